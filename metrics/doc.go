// Package metrics exports the counters of sctp.Transport, rdma.Device and the links below them.
//
//   - In: any number of sources, each with a name that becomes the label "source".
//   - Out: metrics of Prometheus, as a prometheus.Collector, and a variable of package expvar.
//     Handler serves both at /metrics and /debug/vars.
//   - Invariant: counting costs nothing more. A scrape looks at every association for a moment,
//     which takes a few microseconds each.
//
// # Use
//
//	c := metrics.NewCollector()
//	c.AddDevice("storage", dev)
//	c.AddLink("storage", link)
//	prometheus.MustRegister(c)
//	expvar.Publish("rddp", c)
//
// # Names
//
// Names follow the conventions of Prometheus. They are made of the names of the fields that count.
// The comment at the field is the help text, and gives the exact meaning.
//
//	rddp_sctp_*_total              sctp.TransportStats: packets, associations and why they ended
//	rddp_sctp_endpoint_*_total     endpoint.Stats: packets that belong to no association
//	rddp_sctp_assoc_*_total        assoc.Counters, summed over all associations
//	rddp_rdma_*_total              rdma.Stats: sessions and why streams failed
//	rddp_rdma_faults_total         rdma.Faults, with the label "fault"
//	rddp_ddp_session_*_total       ddpadapt.Stats, summed over all associations
//	rddp_ddp_session_faults_total  its Faults, with the label "fault"
//	rddp_raw_*_total, rddp_udp_*_total, rddp_tun_*_total   Stats of the link: what the kernel and the interface do
//	rddp_sctp_rtt_seconds          round trip times, a histogram with buckets of powers of two
//	rddp_rdma_completion_seconds   how long requests took, with the label "operation": send, write, read, atomic
//	rddp_sctp_peer_*               of single associations, where Collector.PerAssociation asks for so many
//	rddp_sctp_associations, rddp_rdma_peers, rddp_rdma_queue_pairs   how many there are now
package metrics
