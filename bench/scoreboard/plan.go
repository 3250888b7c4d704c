package main

// Names of networks.
const (
	lo64K    = "lo/64K"
	lo1500   = "lo/1500"
	veth64K  = "veth/64K"
	veth1500 = "veth/1500"
	tun1500  = "tun/1500"
)

// Sizes of messages in octets.
const (
	tiny = 64
	page = 4 << 10
	mid  = 64 << 10
	big  = 1 << 20
)

func pumpOver(link, net string) spec { return spec{Peer: "pump", Link: link, Net: net} }

func ddp(verb, link, net string, size int) spec {
	return spec{Peer: "ddpbench", Verb: verb, Link: link, Net: net, Size: size}
}

func messages(link, net string, size int) spec {
	return spec{Peer: "sctp", Link: link, Net: net, Size: size}
}

func tcp(net string, size int) spec { return spec{Peer: "tcp", Net: net, Size: size} }

// iperf has its default size for 0.
func iperf(net string, size int) spec { return spec{Peer: "iperf3", Net: net, Size: size} }

func pionOver(size int) spec { return spec{Peer: "pion", Link: "udp", Net: lo1500, Size: size} }

// usrsctp is measured with two sizes of its buffers, and the better one counts: when they are
// longer it overruns the receive buffer of its own socket. A message has to fit.
func usrsctp(link, net string, size int) (list []spec) {
	for _, buffer := range []int{max(256<<10, size*5/4), max(512<<10, size*2)} {
		list = append(list, spec{Peer: "usrsctp", Link: link, Net: net, Size: size, Buffer: buffer})
	}
	return list
}

// usrsctpForced is measured with path MTUs that libusrsctp would not find itself, and the best one
// counts. With longer ones it does not work.
func usrsctpForced(net string, size int) (list []spec) {
	for _, mtu := range []int{16000, 32000, 60000} {
		s := usrsctp("raw", net, size)[0]
		s.PathMTU = mtu
		list = append(list, s)
	}
	return list
}

func pingPong(s spec) spec {
	s.PingPong = true
	return s
}

func polled(s spec) spec {
	s.Poll = polling
	return s
}

func blocked(s spec) spec {
	s.Poll = atOnce
	return s
}

func bothWays(s spec) spec {
	s.Both = true
	return s
}

func qps(s spec, n int) spec {
	s.QPs = n
	return s
}

// cold has messages go through more memory than caches hold: what the copies cost then is the same
// for all.
func cold(s spec) spec {
	s.Memory = 64 << 20
	return s
}

func bare(link, net string) spec {
	return pingPong(spec{Peer: "pump", Link: link, Net: net, Size: tiny})
}

var verbs = []string{"write", "read", "send"}

// plan lists what is measured. What is compared stands close together, as it then runs so.
func plan() (list []spec) {
	add := func(s ...spec) { list = append(list, s...) }

	add(pumpOver("raw", lo64K), bothWays(pumpOver("raw", lo64K)), bothWays(ddp("write", "raw", lo64K, big)))
	for _, v := range verbs {
		add(ddp(v, "raw", lo64K, big), ddp(v, "raw", lo64K, mid), ddp(v, "raw", lo64K, page))
	}
	add(iperf(lo64K, 0), iperf(lo64K, big), tcp(lo64K, page), tcp(lo64K, mid), tcp(lo64K, big))
	add(cold(pumpOver("raw", lo64K)), cold(ddp("write", "raw", lo64K, big)),
		cold(qps(ddp("write", "raw", lo64K, big), 64)))
	add(cold(ddp("read", "raw", lo64K, big)), cold(ddp("send", "raw", lo64K, big)))
	add(bothWays(cold(ddp("write", "raw", lo64K, big))), bothWays(cold(pumpOver("raw", lo64K))))
	add(messages("raw", lo64K, page), messages("raw", lo64K, mid), messages("raw", lo64K, big))

	add(messages("raw", veth64K, mid))
	add(usrsctpForced(veth64K, mid)...)

	add(pumpOver("udp", lo1500), bothWays(pumpOver("udp", lo1500)), bothWays(ddp("write", "udp", lo1500, big)))
	for _, v := range verbs {
		add(ddp(v, "udp", lo1500, big), ddp(v, "udp", lo1500, mid), ddp(v, "udp", lo1500, page))
	}
	add(cold(pumpOver("udp", lo1500)), cold(ddp("write", "udp", lo1500, big)), cold(ddp("read", "udp", lo1500, big)),
		cold(ddp("send", "udp", lo1500, big)))
	add(bothWays(cold(ddp("write", "udp", lo1500, big))), bothWays(cold(pumpOver("udp", lo1500))))
	add(iperf(lo1500, 0), iperf(lo1500, big), tcp(lo1500, mid), tcp(lo1500, big))
	add(messages("udp", lo1500, page), messages("udp", lo1500, mid), messages("udp", lo1500, big))
	add(pionOver(page), pionOver(mid), pionOver(big))
	for _, n := range []int{page, mid, big} {
		add(usrsctp("udp", lo1500, n)...)
	}

	add(pumpOver("raw", veth1500), ddp("write", "raw", veth1500, big))
	for _, n := range []int{mid, big} {
		add(usrsctp("raw", veth1500, n)...)
	}
	add(pumpOver("raw", lo1500), ddp("write", "raw", lo1500, big)) // where libusrsctp does not work
	add(pumpOver("tun", tun1500), ddp("write", "tun", tun1500, big))

	for _, l := range []struct{ link, net string }{{"raw", lo64K}, {"udp", lo1500}} {
		for _, mode := range []func(spec) spec{func(s spec) spec { return s }, blocked, polled} {
			add(mode(bare(l.link, l.net)))
			for _, v := range verbs {
				add(mode(pingPong(ddp(v, l.link, l.net, tiny))))
			}
		}
		add(pingPong(messages(l.link, l.net, tiny)))
	}
	add(pingPong(tcp(lo64K, tiny)), pingPong(pionOver(tiny)))
	add(pingPong(usrsctp("raw", veth1500, tiny)[0]), pingPong(usrsctp("udp", lo1500, tiny)[0]))
	return list
}
