package main

// Names of networks.
const (
	lo64K    = "lo/64K"
	lo1500   = "lo/1500"
	veth64K  = "veth/64K"
	veth1500 = "veth/1500"
	tun1500  = "tun/1500"
)

// linkTCP is the "link" of RDMA over TCP by MPA, which has none of ours.
const linkTCP = "tcp"

// Sizes of messages in octets.
const (
	tiny = 64
	page = 4 << 10
	mid  = 64 << 10
	big  = 1 << 20
)

func pumpOver(link, net string) spec { return spec{Peer: "pump", Link: link, Net: net} }

func ddpbenchSpec(verb, link, net string, size int) spec {
	return spec{Peer: "ddpbench", Verb: verb, Link: link, Net: net, Size: size}
}

func sctpSpec(link, net string, size int) spec {
	return spec{Peer: "sctp", Link: link, Net: net, Size: size}
}

func tcpSpec(net string, size int) spec { return spec{Peer: "tcp", Net: net, Size: size} }

// iperfSpec has its default size for 0.
func iperfSpec(net string, size int) spec { return spec{Peer: "iperf3", Net: net, Size: size} }

func pionOver(size int) spec { return spec{Peer: "pion", Link: "udp", Net: lo1500, Size: size} }

// usrsctpSpecs is measured with two sizes of its buffers, and the better one counts: when they are
// longer it overruns the receive buffer of its own socket. A message has to fit.
func usrsctpSpecs(link, net string, size int) (list []spec) {
	for _, buffer := range []int{max(256<<10, size*5/4), max(512<<10, size*2)} {
		list = append(list, spec{Peer: "usrsctp", Link: link, Net: net, Size: size, Buffer: buffer})
	}
	return list
}

// usrsctpForced is measured with path MTUs that libusrsctp would not find itself, and the best one
// counts. With longer ones it does not work.
func usrsctpForced(net string, size int) (list []spec) {
	for _, mtu := range []int{16000, 32000, 60000} {
		s := usrsctpSpecs("raw", net, size)[0]
		s.PathMTU = mtu
		list = append(list, s)
	}
	return list
}

func pingPong(s spec) spec {
	s.PingPong = true
	return s
}

func withPolling(s spec) spec {
	s.Poll = polling
	return s
}

func withBlocking(s spec) spec {
	s.Poll = atOnce
	return s
}

func bothWays(s spec) spec {
	s.Both = true
	return s
}

func encrypted(s spec) spec {
	s.Encrypted = true
	return s
}

// record is the most that a TLS record holds.
const record = 16 << 10

// encryptionSpecs are QPs and TCP, each in the clear and encrypted.
func encryptionSpecs() (list []spec) {
	for _, s := range []spec{ddpbenchSpec("write", "raw", lo1500, big), ddpbenchSpec("write", "udp", lo1500, big),
		tcpSpec(lo1500, record), pingPong(ddpbenchSpec("send", "udp", lo1500, tiny)), pingPong(tcpSpec(lo1500, tiny))} {
		list = append(list, s, encrypted(s))
	}
	return list
}

func withQPs(s spec, n int) spec {
	s.QPs = n
	return s
}

// withColdMemory has messages go through more memory than caches hold: what the copies cost then is
// the same for all.
func withColdMemory(s spec) spec {
	s.Memory = 64 << 20
	return s
}

func bareLinkPingPong(link, net string) spec {
	return pingPong(spec{Peer: "pump", Link: link, Net: net, Size: tiny})
}

var verbs = []string{"write", "read", "send"}

// measurePlan lists what is measured. What is compared stands close together, as it then runs so.
func measurePlan() (list []spec) {
	add := func(s ...spec) { list = append(list, s...) }

	add(pumpOver("raw", lo64K), bothWays(pumpOver("raw", lo64K)), bothWays(ddpbenchSpec("write", "raw", lo64K, big)))
	for _, v := range verbs {
		add(ddpbenchSpec(v, "raw", lo64K, big), ddpbenchSpec(v, "raw", lo64K, mid), ddpbenchSpec(v, "raw", lo64K, page))
	}
	add(iperfSpec(lo64K, 0), iperfSpec(lo64K, big), tcpSpec(lo64K, page), tcpSpec(lo64K, mid), tcpSpec(lo64K, big))
	add(withColdMemory(pumpOver("raw", lo64K)), withColdMemory(ddpbenchSpec("write", "raw", lo64K, big)),
		withColdMemory(withQPs(ddpbenchSpec("write", "raw", lo64K, big), 64)))
	add(withColdMemory(ddpbenchSpec("read", "raw", lo64K, big)),
		withColdMemory(ddpbenchSpec("send", "raw", lo64K, big)))
	add(bothWays(withColdMemory(ddpbenchSpec("write", "raw", lo64K, big))),
		bothWays(withColdMemory(pumpOver("raw", lo64K))))
	add(sctpSpec("raw", lo64K, page), sctpSpec("raw", lo64K, mid), sctpSpec("raw", lo64K, big))

	add(sctpSpec("raw", veth64K, mid))
	add(usrsctpForced(veth64K, mid)...)

	add(pumpOver("udp", lo1500), bothWays(pumpOver("udp", lo1500)), bothWays(ddpbenchSpec("write", "udp", lo1500, big)))
	for _, v := range verbs {
		add(ddpbenchSpec(v, "udp", lo1500, big), ddpbenchSpec(v, "udp", lo1500, mid),
			ddpbenchSpec(v, "udp", lo1500, page))
	}
	add(withColdMemory(pumpOver("udp", lo1500)), withColdMemory(ddpbenchSpec("write", "udp", lo1500, big)),
		withColdMemory(ddpbenchSpec("read", "udp", lo1500, big)),
		withColdMemory(ddpbenchSpec("send", "udp", lo1500, big)))
	add(bothWays(withColdMemory(ddpbenchSpec("write", "udp", lo1500, big))),
		bothWays(withColdMemory(pumpOver("udp", lo1500))))
	add(iperfSpec(lo1500, 0), iperfSpec(lo1500, big), tcpSpec(lo1500, mid), tcpSpec(lo1500, big))
	add(sctpSpec("udp", lo1500, page), sctpSpec("udp", lo1500, mid), sctpSpec("udp", lo1500, big))
	add(pionOver(page), pionOver(mid), pionOver(big))
	for _, n := range []int{page, mid, big} {
		add(usrsctpSpecs("udp", lo1500, n)...)
	}

	add(pumpOver("raw", veth1500), ddpbenchSpec("write", "raw", veth1500, big))
	for _, n := range []int{mid, big} {
		add(usrsctpSpecs("raw", veth1500, n)...)
	}
	add(pumpOver("raw", lo1500), ddpbenchSpec("write", "raw", lo1500, big)) // where libusrsctp does not work
	add(pumpOver("tun", tun1500), ddpbenchSpec("write", "tun", tun1500, big))

	for _, l := range []struct{ link, net string }{{"raw", lo64K}, {"udp", lo1500}} {
		for _, mode := range []func(spec) spec{func(s spec) spec { return s }, withBlocking, withPolling} {
			add(mode(bareLinkPingPong(l.link, l.net)))
			for _, v := range verbs {
				add(mode(pingPong(ddpbenchSpec(v, l.link, l.net, tiny))))
			}
		}
		add(pingPong(sctpSpec(l.link, l.net, tiny)))
	}
	add(pingPong(tcpSpec(lo64K, tiny)), pingPong(pionOver(tiny)))
	add(pingPong(usrsctpSpecs("raw", veth1500, tiny)[0]), pingPong(usrsctpSpecs("udp", lo1500, tiny)[0]))
	return list
}

// mpaPlan is RDMA over TCP beside Go's TCP on the same device, and beside links of SCTP.
func mpaPlan() (list []spec) {
	for _, net := range []string{lo64K, lo1500, veth1500} {
		list = append(list, tcpSpec(net, big))
		for _, v := range verbs {
			list = append(list, ddpbenchSpec(v, linkTCP, net, big))
		}
		sctpLinks := []string{"raw"}
		if net == lo1500 {
			sctpLinks = append(sctpLinks, "udp")
		}
		for _, l := range sctpLinks {
			list = append(list, ddpbenchSpec("write", l, net, big))
		}
		list = append(list, pingPong(tcpSpec(net, tiny)), pingPong(ddpbenchSpec("send", linkTCP, net, tiny)),
			pingPong(ddpbenchSpec("write", linkTCP, net, tiny)))
	}
	return list
}
