package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestFlagErrors(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", "the verb comes first"},
		{"fly", "one of write, read, send, atomic"},
		{"atomic a -s 4", "an atomic operation is on 8 bytes"},
		{"atomic a -a", "an atomic operation is on 8 bytes"},
		{"atomic a --verify", "an atomic operation has no content"},
		{"atomic a -A ADD", "one of FETCH_AND_ADD, CMP_AND_SWAP"},
		{"write a -A CMP_AND_SWAP", "-A is for atomic"},
		{"write a -H", "-H and -U print each result of --lat"},
		{"write a --lat -D 1 -U", "-H and -U print each result of --lat"},
		{"write a -Q 0", "-Q 0: it is a whole number, from 1 to 8192"},
		{"write a -l 33", "-l 33: it is a whole number, from 1 to 32"},
		{"write a -r 5", "-r is for send"},
		{"send a -r 5 --memory 4M", "goes neither with -a nor with --memory"},
		{"write a -T 3", "the lower two bits of a traffic class are those of ECN"},
		{"write a -L 256", "-L 256: it is a whole number, from 1 to 255"},
		{"write a b", "one HOST is enough"},
		{"write a --self", "--self takes no HOST"},
		{"write a --frobnicate", "unknown flag"},
		{"write a -s 64Q", "such as 4096, 64K or 1M"},
		{"write a -s -1", "such as 4096, 64K or 1M"},
		{"write a -s 4096M", "such as 4096, 64K or 1M"},
		{"write a -s 0", "-s 0: it is a number of bytes, such as 4096, 64K or 1M, from 1 to 256M"},
		{"write a -s 257M", "-s 257M: it is a number of bytes"},
		{"write a -s 256M -q 8", "-s 268435456 with -q 8 needs more than 1024M of memory: take less of one"},
		{"write a -n 0", "-n 0: it is a whole number, from 1 to 100000000"},
		{"write a -n 100000001", "-n 100000001: it is a whole number"},
		{"write a -n 5 -D 1", "by one or the other"},
		{"write a -D 0", "-D 0: it is a time in seconds, from 0.001 to 86400"},
		{"write a -D -1", "-D -1: it is a time in seconds"},
		{"write a -D NaN", "-D NaN: it is a time in seconds"},
		{"write a -D 86401", "-D 86401: it is a time in seconds"},
		{"write a --timeout 0", "--timeout 0: it is a time in seconds"},
		{"write a --memory 0", "--memory 0: it is a number of bytes"},
		{"write a --memory 1K -s 1025", "--memory 1024: it takes one message at least and is at most 1024M"},
		{"write a --memory 1025M", "--memory 1025M: it is a number of bytes"},
		{"write a --interval 1", "--interval goes with -D"},
		{"write a -t 0", "-t 0: it is a whole number"},
		{"write a -t 8193", "-t 8193: it is a whole number, from 1 to 8192"},
		{"write a -t 8192 -q 17", "-t 8192 times -q 17: at most 131072 messages can be outstanding"},
		{"write a -q 0", "1 to 256"},
		{"write a -q 257", "1 to 256"},
		{"write a -a -D 1", "does not go with -D"},
		{"write a -a -s 4", "does not go with -s"},
		{"write a --lat -b", "does not go with -b"},
		{"write a --lat -q 2", "does not go with -q"},
		{"write a --lat -t 2", "one message is outstanding at a time"},
		{"write a -p 0", "1 to 65535"},
		{"write 127.0.0.1 --link mem -n 1", "use it with --self"},
		{"write 127.0.0.1 --local ::1", "127.0.0.1 has no address of the family of ::1"},
		{"write --self --link tun", "--self works with"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			out, errs, code := runBench(t, strings.Fields(tt.args)...)
			check.That(t, code == exitError && out == "" && strings.Contains(errs, tt.want) &&
				!strings.Contains(errs, "%!") && strings.HasSuffix(errs, "Try ddpbench --help.\n"),
				"exit code %d, output %q, errors %q, want %q", code, out, errs, tt.want)
			out, errs, _ = runBench(t, append(strings.Fields(tt.args), "--json")...)
			check.That(t, strings.HasPrefix(out, `{"error":"`) && strings.HasSuffix(out, `"type":"failed"}`+"\n") &&
				strings.Contains(out, tt.want) && errs == "", "as JSON %q, errors %q", out, errs)
		})
	}
}

// The bounds themselves are within bounds.
func TestFlagsAtTheirBounds(t *testing.T) {
	most := params{size: 1, qps: 4, depth: 1, iters: defaultItersWrite}
	most.size += int(maxMemory-most.endMemory(false)) / 4
	largest := fmt.Sprintf("-s %d -q 4 -t 1", most.size)
	for _, args := range []string{"-s 256M", "-t 8192", "-q 256", "-t 8192 -q 16", "-n 100000000", "-n 1", "-t 1",
		"-s 1", "-D 86400", "--timeout 86400",
		"-D 86400 --interval 86400", "--memory 1K -s 1K -n 1", "--memory 1024M", largest, "-p 1", "--lat -D 1"} {
		_, err := parseArgs(append(strings.Fields(args), "write", "a"), io.Discard)
		check.That(t, err == nil, "%s: %v", args, err)
	}
	most.size++
	if _, err := parseArgs(strings.Fields(fmt.Sprintf("write a -s %d -q 4 -t 1", most.size)), io.Discard); err == nil {
		t.Error("an octet more than the memory is accepted")
	}
	for _, row := range []struct {
		p                        params
		slots, reads, moderation int
	}{
		// 673 x 24929 is an octet more than 16M
		{params{verb: verbSend, size: 24929, depth: 8192, qps: 1}, 672, -1, 100},
		// 2113 x 1985 is an octet more than 4M
		{params{verb: verbWrite, size: 1985, depth: 8192, qps: 1}, 2112, -1, 100},
		{params{verb: verbSend, size: 64 << 20, depth: 128, qps: 1}, 2, -1, 1},
		{params{verb: verbRead, size: 64 << 20, depth: 128, qps: 1}, 1, 128, 1},
		{params{verb: verbRead, size: 4096, depth: 129, qps: 2}, 129, 128, 32},
		{params{verb: verbRead, size: 4096, depth: 5, qps: 1, memoryOctets: 64 << 20}, 8192, 5, 1},
		{params{verb: verbWrite, size: 4096, depth: 128, qps: 16, memoryOctets: 64 << 20}, 1024, -1, 32},
		{params{verb: verbWrite, size: 2, depth: 8192, qps: 1}, 8192, -1, 100},  // a completion for so many messages
		{params{verb: verbWrite, size: 1 << 20, depth: 128, qps: 1}, 4, -1, 16}, // or so many octets,
		{params{verb: verbWrite, size: 16 << 20, depth: 128, qps: 1}, 1, -1, 1},
		{params{verb: verbWrite, size: 2, depth: 4, qps: 1}, 4, -1, 1}, // and before the queue drains
		{params{verb: verbWrite, size: 2, depth: 1, qps: 1}, 1, -1, 1},
	} {
		s, r, m := row.p.slotCount(), row.p.readDepth(), row.p.completionInterval()
		check.That(t, s == row.slots && r == row.reads && m == row.moderation,
			"%+v: %d slots, %d reads outstanding, one in %d asks for a completion", row.p, s, r, m)
	}
}

func TestHelpShowsTheUsageAndEndsWell(t *testing.T) {
	out, errs, code := runBench(t, "--help")
	check.That(t, code == exitOK && errs == "" && strings.Contains(out, "Usage: ddpbench write|read|send") &&
		strings.Contains(out, "--bidirectional") && !strings.Contains(out, "(default true)"),
		"exit code %d, errors %q, output %q", code, errs, out)
}

func TestDefaultsOfEachVerb(t *testing.T) {
	for _, tt := range []struct {
		args string
		want params
	}{
		{"write h", params{verb: verbWrite, size: 65536, iters: 5000, depth: 128, qps: 1}},
		{"read h", params{verb: verbRead, size: 65536, iters: 1000, depth: 128, qps: 1}},
		{"send h", params{verb: verbSend, size: 65536, iters: 1000, depth: 128, qps: 1}},
		{"write h --lat", params{verb: verbWrite, isLatency: true, size: 2, iters: 1000, depth: 1, qps: 1}},
		{"send h -s 1M -D 2.5 -t 7 -q 3 -b --verify", params{verb: verbSend, size: 1 << 20, duration: 2500 * time.Millisecond, depth: 7, qps: 3, bidirectional: true, verify: true}},
		{"write h -s 64k", params{verb: verbWrite, size: 65536, iters: 5000, depth: 128, qps: 1}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			o := must.Get(parseArgs(strings.Fields(tt.args), io.Discard))(t)
			check.That(t, o.params == tt.want && o.host == "h", "got %+v, want %+v", o.params, tt.want)
		})
	}
}

func TestHelloSurvivesTheWireAndDamageIsRefused(t *testing.T) {
	h := hello{
		params: params{verb: verbSend, bidirectional: true, verify: true, size: 4096, memoryOctets: 1 << 20,
			depth: 17, qps: 5, duration: time.Second, seed: 6},
		run: 7, lane: 4, target: target{8, 9, 10},
	}
	good := h.encode()
	var got hello
	err := got.decode(good)
	must.That(t, err == nil && got == h, "got %+v and %v, want %+v", got, err, h)
	for _, tt := range []struct {
		name   string
		change func(b []byte) []byte
		want   string
	}{
		{"empty", func([]byte) []byte { return nil }, "not from a ddpbench"},
		{"another tool's", func(b []byte) []byte { return append([]byte("ddpping1"), b[8:]...) }, "not from a ddpbench"},
		{"another version", func(b []byte) []byte { b[9]++; return b }, "use the same release"},
		{"another version, and no more", func(b []byte) []byte { b[9]++; return b[:10] }, "use the same release"},
		{"cut short within the version", func(b []byte) []byte { return b[:9] }, "not from a ddpbench"},
		{"cut short", func(b []byte) []byte { return b[:len(b)-1] }, "octets long"},
		{"too long", func(b []byte) []byte { return append(b, 0) }, "octets long"},
		{"unknown verb", func(b []byte) []byte { b[10] = 4; return b }, "write, read, send and atomic only"},
		{"no QP", func(b []byte) []byte { b[13] = 0; return b }, "number of QPs is 1"},
		{"too many QPs", func(b []byte) []byte { b[12] = 255; return b }, "number of QPs is 1"},
		{"a QP beyond the last", func(b []byte) []byte { b[15] = 5; return b }, "does not exist"},
		{"no size", func(b []byte) []byte { clear(b[16:20]); return b }, "1 octet to"},
		{"enormous size", func(b []byte) []byte { b[16] = 255; return b }, "1 octet to"},
		{"size that takes all memory", func(b []byte) []byte { b[16] = 15; clear(b[20:24]); return b }, "of memory"},
		{"enormous memory", func(b []byte) []byte { b[20] = 255; return b }, "--memory"},
		{"memory for less than a message", func(b []byte) []byte { b[21] = 0; b[23] = 1; return b }, "--memory"},
		{"no depth", func(b []byte) []byte { clear(b[24:28]); return b }, "depth is 1 to"},
		{"enormous depth", func(b []byte) []byte { b[24] = 255; return b }, "depth is 1 to"},
		{"neither messages nor time", func(b []byte) []byte { clear(b[28:44]); return b }, "a number of messages or a time"},
		{"messages and time", func(b []byte) []byte { b[35] = 1; return b }, "a number of messages or a time"},
		{"endless messages", func(b []byte) []byte { b[28] = 1; return b }, "at most 100000000"},
		{"endless time", func(b []byte) []byte { b[36] = 127; return b }, "at most 24h"},
		{"negative time", func(b []byte) []byte { b[36] = 128; return b }, "at most 24h"},
		{"latency both ways", func(b []byte) []byte { b[11] |= flagLat; return b }, "does not go with -b"},
		{"latency of QPs", func(b []byte) []byte { b[11] = flagLat; return b }, "does not go with -q"},
		{"latency of many messages", func(b []byte) []byte { b[11], b[13], b[15] = flagLat, 1, 0; return b }, "one message outstanding"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var h hello
			err := h.decode(tt.change(bytes.Clone(good)))
			check.That(t, err != nil && strings.Contains(err.Error(), tt.want), "got %v, want %q", err, tt.want)
			var usage *cli.UsageError
			check.That(t, errors.As(err, &usage), "%v is not a sentence for the client", err)
		})
	}
}

// TestMemoryBound makes sure that what check allows is what a run takes.
func TestMemoryBound(t *testing.T) {
	// 8 control buffers of 40 octets, 4 messages of 100, and their receive buffers
	for p, want := range map[params][2]int64{
		{verb: verbWrite, size: 100, depth: 4, qps: 2}:                  {2 * (8*40 + 400), 2 * (8*40 + 400)},
		{verb: verbSend, size: 100, depth: 4, qps: 1}:                   {8*40 + 400, (8 + 4) * 100},
		{verb: verbSend, size: 100, depth: 4, qps: 1, wantsNotes: true}: {8*40 + 400 + notesMemory, (8+4)*100 + notesMemory},
	} {
		queues := func(client bool) int64 { return int64(p.qps)*p.queueSizes(client).Memory() + runMemory }
		got := [2]int64{p.endMemory(true) - queues(true), p.endMemory(false) - queues(false)}
		check.That(t, got == want, "%+v needs %d octets, want %d", p, got, want)
	}
	for v := verbWrite; v <= verbSend; v++ {
		for _, both := range []bool{false, true} {
			for _, size := range []int{1, 4096, 1 << 20, 100 << 20} {
				for _, qps := range []int{1, 3, 256} {
					for _, mem := range []int{0, size, 64 << 20} {
						p := params{verb: v, bidirectional: both, size: size, memoryOctets: mem, qps: qps, depth: 128,
							iters: 1}
						if p.checkBounds() != nil {
							continue
						}
						n := p.slotCount()
						check.That(t, n >= 1 && n <= maxSlots && (mem != 0 || n <= p.depth), "%+v has %d slots", p, n)
						check.That(t, p.endMemory(true) <= maxMemory && p.endMemory(false) <= maxMemory,
							"%+v needs %d and %d octets", p, p.endMemory(true), p.endMemory(false))
					}
				}
			}
		}
	}
}
