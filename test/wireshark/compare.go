package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/rddp-go/rddp/rdma"
)

// PPIDs of DDP over SCTP.
const (
	ppidSegment = 16
	ppidControl = 17
)

// half is one direction of a session: its chunks in DDP-SSN order.
type half []*chunk

// key names the half of a stream: who sends, to whom, on which stream.
type key struct{ from, to, stream uint64 }

// splitHalves sorts the chunks of a capture.
func splitHalves(chunks []*chunk) (map[key]half, error) {
	all := make(map[key]half)
	seen := make(map[[3]uint64]bool)
	for _, c := range chunks {
		stream, err := c.numberField("sctp.data_sid")
		if err != nil {
			return nil, err
		}
		tsn, err := c.numberField("sctp.data_tsn_raw")
		if err != nil {
			return nil, err
		}
		if id := [3]uint64{c.from, c.to, tsn}; seen[id] {
			continue // sent again
		} else {
			seen[id] = true
		}
		k := key{c.from, c.to, stream}
		all[k] = append(all[k], c)
	}
	for k, h := range all {
		sort.SliceStable(h, func(i, j int) bool { return ddpSSN(h[i]) < ddpSSN(h[j]) })
		for i, c := range h {
			if ddpSSN(c) != i {
				return nil, fmt.Errorf("frame %d: DDP-SSN %d on stream %d, want %d", c.frame, ddpSSN(c), k.stream, i)
			}
		}
	}
	return all, nil
}

func ddpSSN(c *chunk) int {
	v, err := c.numberField("rddp.ssn")
	if err != nil {
		return -1
	}
	return int(v)
}

// checker compares, says so and counts.
type checker struct {
	out            io.Writer
	passed, failed int
	requests       []uint64 // identifiers of the atomics of the session, in their order
}

func (c *checker) printVerdict(what string, faults []string) {
	if len(faults) == 0 {
		c.passed++
		fmt.Fprintln(c.out, "ok  ", what)
		return
	}
	c.failed++
	fmt.Fprintln(c.out, "FAIL", what)
	for _, f := range faults {
		fmt.Fprintln(c.out, "     |", f)
	}
}

// checkScenes finds the session of each scene by the private data of its Initiate and compares both
// halves.
func (c *checker) checkScenes(scenes []scene, all map[key]half) {
	used := 0
	for _, s := range scenes {
		var found []key
		for k, h := range all {
			if private, ok := h[0].octetsField("rddp.private"); ok && k.to == rdma.DefaultPort &&
				string(private) == s.name {
				found = append(found, k)
			}
		}
		if len(found) != 1 {
			c.printVerdict(s.name, []string{fmt.Sprintf("Wireshark sees %d sessions of this name", len(found))})
			continue
		}
		k := found[0]
		c.requests = nil
		c.checkHalf(s.name+", client", s.client, all[k])
		c.checkHalf(s.name+", server", s.server, all[key{k.to, k.from, k.stream}])
		used += 2
	}
	var faults []string
	if used != len(all) {
		faults = []string{fmt.Sprintf("Wireshark sees %d halves of sessions, there were %d", len(all), used)}
	}
	c.printVerdict("there are no other sessions", faults)
}

// checkNotices makes sure that a checker finds one number that differs, of all that were sent.
func (c *checker) checkNotices(scenes []scene, all map[key]half) {
	var missed []string
	n := 0
	for _, s := range scenes {
		for _, m := range slices.Concat(s.client, s.server) {
			for _, name := range sortedKeys(m.numbers) {
				m.numbers[name]++
				other := checker{out: io.Discard}
				if other.checkScenes(scenes, all); other.failed != 1 {
					missed = append(missed, fmt.Sprintf("%s: %s: %s", s.name, m.what, name))
				}
				m.numbers[name]--
				n++
			}
		}
	}
	c.printVerdict(fmt.Sprintf("each of %d numbers would have been noticed", n), missed)
}

func (c *checker) checkHalf(who string, sent []message, h half) {
	for _, m := range sent {
		n, faults := c.checkMessage(&m, h)
		segments := ""
		if n > 1 {
			segments = fmt.Sprintf(" in %d segments", n)
		}
		c.printVerdict(fmt.Sprintf("%s: %s of %d octets%s: %d fields", who, m.what, len(m.payload), segments,
			len(m.numbers)+len(m.octets)), faults)
		h = h[n:]
	}
	if len(h) > 0 {
		c.printVerdict(who, []string{fmt.Sprintf("frame %d and %d more chunks were not sent", h[0].frame, len(h)-1)})
	}
}

// checkMessage compares one message with the chunks at the beginning of h, and returns how many
// were its.
func (c *checker) checkMessage(m *message, h half) (n int, faults []string) {
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if len(h) == 0 {
		bad("Wireshark does not see it")
		return 0, faults
	}
	first := h[0]
	is := func(ch *chunk, name string, want uint64) {
		if got, err := ch.numberField(name); err != nil {
			bad("%v", err)
		} else if got != want {
			bad("frame %d: %s is %#x, %#x was sent", ch.frame, name, got, want)
		}
	}
	for _, name := range sortedKeys(m.numbers) {
		is(first, name, m.numbers[name])
	}
	for _, name := range sortedKeys(m.octets) {
		if got, _ := first.octetsField(name); !bytes.Equal(got, m.octets[name]) {
			bad("frame %d: %s is %x, %x was sent", first.frame, name, got, m.octets[name])
		}
	}
	if m.header == nil {
		is(first, "sctp.data_payload_proto_id", ppidControl)
		private, _ := first.octetsField("rddp.private")
		if !bytes.Equal(private, m.payload) {
			bad("frame %d: private data %x, %x was sent", first.frame, private, m.payload)
		}
		return 1, faults
	}
	var payload []byte
	for n < len(h) {
		ch := h[n]
		n++
		is(ch, "sctp.data_payload_proto_id", ppidSegment)
		for _, name := range []string{"iwarp_ddp.dv", "iwarp_rdma.version"} {
			is(ch, name, 1)
		}
		for _, name := range []string{"iwarp_ddp.rsvd", "iwarp_rdma.rsv"} {
			is(ch, name, 0)
		}
		for _, name := range []string{"iwarp_ddp.stag", "iwarp_ddp.qn", "iwarp_ddp.msn", "iwarp_rdma.opcode"} {
			if want, ok := m.numbers[name]; ok {
				is(ch, name, want)
			}
		}
		for _, name := range []string{"iwarp_ddp.mo", "iwarp_ddp.tagged_offset"} {
			if want, ok := m.numbers[name]; ok {
				is(ch, name, want+uint64(len(payload)))
			}
		}
		last, err := ch.numberField("iwarp_ddp.last_flag")
		if err != nil {
			bad("%v", err)
		}
		data, _ := ch.octetsField("data.data")
		payload = append(payload, data...)
		if last == 1 || err != nil {
			break
		}
	}
	if !bytes.Equal(payload, m.payload) {
		bad("frame %d: %d octets of payload, %d were sent, or they differ", first.frame, len(payload), len(m.payload))
	}
	faults = append(faults, c.checkIdentifiers(first)...)
	return n, append(faults, checkQuoted(m, first)...)
}

// checkIdentifiers checks that Atomic Responses reflect the identifiers of the requests, in their
// order.
func (c *checker) checkIdentifiers(ch *chunk) (faults []string) {
	if id, err := ch.numberField("iwarp_rdma.atomic.request_identifier"); err == nil {
		c.requests = append(c.requests, id)
	}
	if id, err := ch.numberField("iwarp_rdma.atomic.original_request_identifier"); err == nil {
		if len(c.requests) == 0 || c.requests[0] != id {
			return []string{fmt.Sprintf("frame %d: a response to request %d, outstanding are %d", ch.frame, id,
				c.requests)}
		}
		c.requests = c.requests[1:]
	}
	return nil
}

// checkQuoted compares the headers that a Terminate quotes. Wireshark 4.0 gets the length of a
// quoted DDP header wrong, so that it is shown by rddp.lua; Wireshark's own fields hold the same
// octets, cut at another place.
func checkQuoted(m *message, ch *chunk) (faults []string) {
	t := &m.terminate
	if !t.HasDDP {
		return nil
	}
	whole := t.Append(nil)[4:] // behind the control field: segment length, DDP header, RDMA header
	show := func(names ...string) []byte {
		var shown []byte
		for _, name := range names {
			b, _ := ch.octetsField(name)
			shown = append(shown, b...)
		}
		return shown
	}
	if shown := show("rddp.quoted.length", "rddp.quoted.ddp", "rddp.quoted.rdma"); !bytes.Equal(shown, whole) {
		faults = append(faults, fmt.Sprintf("frame %d: quotes %x, %x was sent", ch.frame, shown, whole))
	}
	shown := show("iwarp_rdma.term_ddp_seg_len", "iwarp_rdma.term_ddp_h", "iwarp_rdma.term_rdma_h")
	if n := min(len(shown), len(whole)); n < 16 || !bytes.Equal(shown[:n], whole[:n]) {
		faults = append(faults, fmt.Sprintf("frame %d: quotes %x in Wireshark's own fields, %x was sent", ch.frame,
			shown, whole))
	}
	return faults
}

func sortedKeys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
