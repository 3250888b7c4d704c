package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/internal/cli"
)

// perftestFlags are the flags of perftest that have to be translated.
type perftestFlags struct {
	events     bool
	recvDepth  int
	atomicType string
}

func (f *perftestFlags) addFlags(fs *pflag.FlagSet, o *options) {
	fs.BoolVar(&o.gbits, "report_gbits", false, "report bandwidth in Gb/sec, 10^9 bits, instead of MiB/sec, 2^20 bytes")
	fs.BoolVarP(&o.noPeak, "noPeak", "N", false, "do not measure the peak bandwidth")
	fs.BoolVarP(&o.histogram, "report-histogram", "H", false, "with --lat and -n, print all results, sorted")
	fs.BoolVarP(&o.unsorted, "report-unsorted", "U", false, "with --lat and -n, print all results, in their order")
	fs.BoolVarP(&f.events, "events", "e", false,
		"sleep until something comes instead of polling for a while, as --poll -1ns")
	fs.VarP(cli.Int(&o.cqModeration, 0, 1, maxDepth), "cq-mod", "Q",
		"one of `n` messages asks for a completion (default 100, or one in 16 MiB)")
	fs.VarP(cli.Int(&o.postList, 0, 1, maxBurst), "post_list", "l",
		"post at most `n` requests at a time, 1 to 32 (default 32)")
	fs.VarP(cli.Int(&f.recvDepth, 0, 2, maxSlots), "rx-depth", "r",
		"with send, receives that are posted on a QP, instead of --memory")
	fs.StringVarP(&f.atomicType, "atomic_type", "A", "FETCH_AND_ADD",
		"with atomic, the `operation`: FETCH_AND_ADD or CMP_AND_SWAP")
	fs.VarP(cli.Int(&o.link.Mark.Class, 0, 0, 255), "tos", "T",
		"traffic class of packets, a `number`; its lower two bits are ECN's")
	fs.VarP(cli.Int(&o.link.Mark.TTL, 0, 1, 255), "hop_limit", "L",
		"`time` to live of packets, or hop limit (default: the system's)")
	fs.VarP(cli.MTU(&o.link.MTU), "path-mtu", "m", "as --mtu, in `bytes`")
	fs.BoolP("rdma_cm", "R", false, "taken: QPs always connect through a connection protocol")
	fs.BoolP("comm_rdma_cm", "z", false, "taken: that protocol always carries what the ends exchange")
	fs.Bool("cpu_util", false, "taken: the processor time is always shown")
}

// applyTo applies the flags to the options.
func (f *perftestFlags) applyTo(fs *pflag.FlagSet, o *options) error {
	switch {
	case (o.histogram || o.unsorted) && (!o.isLatency || o.duration > 0):
		return cli.Usagef("-H and -U print each result of --lat, of as many messages as -n says")
	case fs.Changed("rx-depth") && (o.verb != verbSend || o.allSizes || o.memoryOctets > 0):
		return cli.Usagef("-r is for send, and goes neither with -a nor with --memory")
	case f.atomicType != "FETCH_AND_ADD" && f.atomicType != "CMP_AND_SWAP":
		return cli.Usagef("-A %s: it is one of FETCH_AND_ADD, CMP_AND_SWAP", f.atomicType)
	case fs.Changed("atomic_type") && o.verb != verbAtomic:
		return cli.Usagef("-A is for atomic")
	case o.verb == verbAtomic && o.allSizes:
		return cli.Usagef("-a: an atomic operation is on %d bytes", atomicSize)
	case o.link.Mark.Class&3 != 0:
		return cli.Usagef("-T %d: the lower two bits of a traffic class are those of ECN", o.link.Mark.Class)
	}
	o.compareSwap = f.atomicType == "CMP_AND_SWAP"
	if f.events {
		o.link.Poll = -time.Nanosecond
	}
	if f.recvDepth > 0 {
		o.setDefaults(fs.Changed("size"))
		need := int64(f.recvDepth) * int64(o.size) * int64(o.qps)
		if need > maxMemory {
			return cli.Usagef("-r %d: receives of %d bytes on %d QPs need more than %dM of memory", f.recvDepth,
				o.size, o.qps, maxMemory>>20)
		}
		o.memoryOctets = int(need)
	}
	return nil
}

// noDevice and the others are the reasons why flags of perftest are refused.
const (
	noDevice    = "there is no RDMA device: the --local address, or the routing table, chooses where packets leave"
	noGPU       = "messages are in ordinary memory: there is no GPU here"
	noEthernet  = "messages go over SCTP, not in Ethernet frames of their own"
	noLimit     = "SCTP finds the rate that the path carries; to hold traffic back, use tc"
	noMulticast = "an association has one peer, so there is no multicast"
	noBox       = "there is no device that could do it: the stack is software"
	noJudge     = "ddpbench measures and does not judge: compare what --json prints"
	noCipher    = "--insecure-self-signed, or --cert, encrypts all that is sent"
)

// refusedFlags are the flags of perftest that make no sense here.
var refusedFlags = []cli.RefusedFlag{
	{Short: "c", Long: "connection", Why: "there is one type of connection, reliable and ordered (RC)"},
	{Short: "C", Long: "report-cycles", Why: "the frequency of processors changes, so cycles are no time: results are microseconds"},
	{Short: "d", Long: "ib-dev", Why: noDevice},
	{Short: "f", Long: "margin", Why: "with -D all counts, from the first message to the last acknowledgement: there is no margin"},
	{Short: "F", Long: "CPU-freq", Why: "ddpbench does not look at the processor's frequency, so it has no warning to turn off"},
	{Short: "g", Long: "mcg", Why: noMulticast},
	{Short: "i", Long: "ib-port", Why: noDevice},
	{Short: "I", Long: "inline_size", Why: "messages of any size are sent from where they are, without a copy"},
	{Short: "M", Long: "MGID", Why: noMulticast},
	{Short: "o", Long: "outs", Why: "as many Reads and atomics are outstanding as -t says, 128 at most"},
	{Short: "O", Long: "dualport", Why: "several paths belong to one association: --local takes several addresses"},
	{Short: "S", Long: "sl", Why: "there are no service levels: -T sets the traffic class"},
	{Short: "u", Long: "qp-timeout", Why: "SCTP retransmits by the round trip time of the path"},
	{Short: "w", Long: "limit_bw", Why: noJudge},
	{Short: "W", Long: "report-counters", Why: "there is no device with counters: --metrics serves those of the stack"},
	{Short: "x", Long: "gid-index", Why: "addresses are those of IP: there are no GIDs"},
	{Short: "X", Long: "vector", Why: "there are no interrupts to choose among: --shards takes several queues"},
	{Short: "y", Long: "limit_msgrate", Why: noJudge},
	{Long: "out_json", Why: "--json prints it to standard output: redirect that"},
	{Long: "out_json_file", Why: "--json prints it to standard output: redirect that"},
	{Long: "congest_type", Why: "congestion control is the stack's: choose it by --cc"},
	{Long: "dlid", Why: noDevice},
	{Long: "dont_xchg_versions", Why: "both ends have to be of the same release, and say so"},
	{Long: "force-link", Why: "--link chooses how packets travel"},
	{Long: "use-srq", Why: "each QP has receives of its own here"},
	{Long: "recv_post_list", Why: "a receive is posted when one has been used"},
	{Long: "no_lock", Why: "the QPs of a run are driven by one goroutine: no lock is contended"},
	{Long: "no_ddp", Why: "placing data as it comes is what this stack is for"},
	{Long: "use_ooo", Why: "data is always placed as soon as it comes"},
	{Long: "ipv6", Why: "the address or name of the host says it"},
	{Long: "ipv6-addr", Why: "the address or name of the host says it"},
	{Long: "bind_source_ip", Why: "--local does it"},
	{Long: "latency_gap", Why: "each message goes as soon as the last is answered; ddpping -i leaves time in between"},
	{Long: "mmap", Why: "messages are in ordinary memory"},
	{Long: "mmap-offset", Why: "messages are in ordinary memory"},
	{Long: "mr_per_qp", Why: "each QP has regions of its own anyway"},
	{Long: "odp", Why: "memory is paged by the system, and registration pins nothing"},
	{Long: "output", Why: "--json prints each figure under its name"},
	{Long: "payload_file_path", Why: "the content of messages comes from a seed, so that --verify knows it"},
	{Long: "use_old_post_send", Why: "there is one way to post"},
	{Long: "perform_warm_up", Why: "the memory is touched before the run begins anyway"},
	{Long: "pkey_index", Why: noDevice},
	{Long: "report-both", Why: "the sum of both directions is shown; run one of them for its own"},
	{Long: "report-per-port", Why: "several paths belong to one association: --metrics shows them"},
	{Long: "reversed", Why: "read moves data the other way; or exchange the hosts"},
	{Long: "run_infinitely", Why: "-D 86400 --interval 1 runs for a day and reports every second"},
	{Long: "retry_count", Why: "--timeout says how long to wait for the server"},
	{Long: "tclass", Why: "-T sets the traffic class"},
	{Long: "flow_label", Why: "the flow label of IPv6 is always 0"},
	{Long: "use_cuda", Why: noGPU}, {Long: "use_cuda_bus_id", Why: noGPU}, {Long: "use_cuda_dmabuf", Why: noGPU}, {Long: "use_rocm", Why: noGPU},
	{Long: "use_neuron", Why: noGPU}, {Long: "use_neuron_dmabuf", Why: noGPU}, {Long: "use_hl", Why: noGPU}, {Long: "use_mlu", Why: noGPU},
	{Long: "use_hugepages", Why: "the Go runtime asks for huge pages by itself"},
	{Long: "use-null-mr", Why: noBox}, {Long: "disable_pcie_relaxed", Why: noBox},
	{Long: "wait_destroy", Why: "a run frees what it has used"},
	{Long: "burst_size", Why: noLimit}, {Long: "typical_pkt_size", Why: noLimit}, {Long: "rate_limit", Why: noLimit}, {Long: "rate_units", Why: noLimit}, {Long: "rate_limit_type", Why: noLimit},
	{Long: "write_with_imm", Why: "not measured yet; send and write are"}, {Long: "unsolicited_write", Why: "not measured yet; send and write are"},
	{Long: "connectionless", Why: noMulticast},
	{Long: "log_dci_streams", Why: noBox}, {Long: "log_active_dci_streams", Why: noBox},
	{Long: "aes_xts", Why: noCipher}, {Long: "encrypt_on_tx", Why: noCipher}, {Long: "sig_before", Why: noCipher}, {Long: "aes_block_size", Why: noCipher},
	{Long: "data_enc_keys_number", Why: noCipher}, {Long: "kek_path", Why: noCipher}, {Long: "credentials_path", Why: noCipher}, {Long: "data_enc_key_app_path", Why: noCipher},
	{Short: "B", Long: "source_mac", Why: noEthernet}, {Short: "E", Long: "dest_mac", Why: noEthernet}, {Short: "G", Long: "use_rss", Why: noEthernet},
	{Short: "J", Long: "dest_ip", Why: noEthernet}, {Short: "j", Long: "source_ip", Why: noEthernet}, {Short: "K", Long: "dest_port", Why: noEthernet},
	{Short: "k", Long: "source_port", Why: noEthernet}, {Short: "Y", Long: "ethertype", Why: noEthernet}, {Short: "Z", Long: "server", Why: noEthernet},
	{Short: "P", Long: "client", Why: noEthernet}, {Short: "v", Long: "mac_fwd", Why: noEthernet}, {Long: "vlan_en", Why: noEthernet}, {Long: "vlan_pcp", Why: noEthernet},
	{Long: "flows", Why: noEthernet}, {Long: "flows_burst", Why: noEthernet}, {Long: "promiscuous", Why: noEthernet}, {Long: "reply_every", Why: noEthernet},
	{Long: "sniffer", Why: noEthernet}, {Long: "tcp", Why: noEthernet}, {Long: "raw_ipv6", Why: noEthernet}, {Long: "raw_mcast", Why: noEthernet},
}
