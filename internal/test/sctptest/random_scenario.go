package sctptest

import (
	"fmt"
	"math/rand"
	"strings"
)

// scenarioWriter writes the scripts of stories by chance.
type scenarioWriter struct {
	*rand.Rand
	b    strings.Builder
	nets int
}

func (w *scenarioWriter) writeLine(format string, args ...any) {
	fmt.Fprintf(&w.b, format+"\n", args...)
}

// pickOne picks one; %d in it is a small number.
func (w *scenarioWriter) pickOne(list ...string) string {
	s := list[w.Intn(len(list))]
	for strings.Contains(s, "%d") {
		s = strings.Replace(s, "%d", fmt.Sprint(w.Intn(6)), 1)
	}
	return s
}

func (w *scenarioWriter) drawHost() string { return w.pickOne("a", "b") }

// RandomScenario writes the script that belongs to a seed.
func RandomScenario(seed int64) string {
	w := &scenarioWriter{Rand: rand.New(rand.NewSource(seed)), nets: 1}
	kind := w.pickOne("", "", "ipv6", "udp", "dual", "2", "2", "3", "2 far", "3 far")
	switch {
	case kind == "dual" || kind != "" && kind[0] == '2':
		w.nets = 2
	case kind != "" && kind[0] == '3':
		w.nets = 3
	}
	w.writeLine("hosts %s %s %s %s", kind, w.pickOne("", "pmtud", "pmtud"), w.pickOne("", "ecn"),
		w.pickOne("", "link=1280", "link=1503", "link=5000"))
	for _, h := range []string{"a", "b"} {
		if w.Intn(4) == 0 {
			w.writeLine("endpoint %s %s", h, w.pickOne("MaxAnswers=3 AnswerKey=%d", "MaxSetups=24", "MaxAssocs=1",
				"MaxPerSource=1", "MaxAnswers=2 MaxSetups=40 MaxAssocs=2"))
		}
		w.writeLine("config %s RTOInitial=%s RTOMin=100ms RTOMax=%s", h, w.pickOne("100ms", "300ms", "1s"),
			w.pickOne("1s", "4s"))
		if w.nets > 1 && w.Intn(4) > 0 {
			w.writeLine("config %s LocalAddrs=all%s", h,
				w.pickOne("", "", "", ",127.0.0.1", ",169.254.7.7,fe80::7", ",100.64.0.7,192.0.2.7",
					",fd00::7,2001:db8:7::7"))
		}
		for range w.Intn(4) {
			w.writeLine("config %s %s", h, w.pickOne("OutStreams=%d", "InStreams=7", "RecvBuffer=3000",
				"RecvBuffer=9000",
				"SendBuffer=5000", "MaxMessage=2500",
				"Adaptation=%d", "Adaptation=1", "RequireAdaptation=true", "SackDelay=20ms", "LoneSackDelay=90ms",
				"HeartbeatInterval=1s", "HeartbeatInterval=-1s", "CookieLife=150ms",
				"MaxBurst=2", "MaxBurst=-1", "RFC9260=true", "HBMaxBurst=2", "NoDelay=true", "AssocMaxRetrans=3",
				"PathMaxRetrans=2", "MaxInitRetrans=2",
				"PotentiallyFailedMaxRetrans=1", "HidePotentiallyFailed=true", "PrimarySwitchoverMaxRetrans=%d",
				"MTU=1000", "DisablePMTUD=true", "DisableECN=true"))
		}
	}
	if w.Intn(3) > 0 {
		w.writeLine("listen a")
	}
	if w.Intn(8) > 0 {
		w.writeLine("listen b")
	}
	w.writeRule()
	if w.Intn(6) == 0 {
		w.writeLine("cut %d", w.Intn(w.nets))
	}
	w.writeConnect("a")
	if w.Intn(4) == 0 {
		w.writeConnect("b")
	}
	w.writeLine("run %s", w.pickOne("5ms", "15ms", "25ms", "1s", "3s"))
	for range 12 + w.Intn(15) {
		w.writeEvent()
	}
	w.writeLine("let")
	for k := range w.nets {
		w.writeLine("heal %d", k)
	}
	w.writeLine("run 20s")
	if w.Intn(2) == 0 {
		w.writeLine("shutdown %s", w.drawHost())
		w.writeLine("run 20s")
	}
	for _, h := range []string{"a", "b"} {
		if w.Intn(3) == 0 {
			w.writeLine("send %s 100 2", h)
			w.writeLine("abort %s because %d", h, 1+w.Intn(2)*500)
			w.writeLine("run 1s")
			w.writeLine("timeout %s", h)
			w.writeLine("late report %s toobig 1280 28", h)
			w.writeLine("late forge %s 0 0400000c 00010008 01020304", h)
		}
		w.writeLine("read %s", h)
		w.writeLine("tables %s", h)
		w.writeLine("state %s", h)
		w.writeLine("stats %s", h)
		w.writeLine("steps %s", h)
	}
	return w.b.String()
}

func (w *scenarioWriter) writeConnect(h string) {
	to := "0"
	if w.nets > 1 && w.Intn(2) == 0 {
		to = "1,0"
	}
	w.writeLine("connect %s %s", h, to)
}

// writeRule is what becomes of packets.
func (w *scenarioWriter) writeRule() {
	what := w.pickOne("DATA", "DATA", "SACK", "INIT", "INIT-ACK", "COOKIE-ECHO", "COOKIE-ACK", "HEARTBEAT",
		"HEARTBEAT-ACK", "PAD", "SHUTDOWN", "SHUTDOWN-ACK", "SHUTDOWN-COMPLETE", "ABORT", "ERROR")
	w.writeLine("%s %s %s %s %d %s", w.pickOne("lose", "lose", "dup", "delay"), w.drawHost(),
		w.pickOne("1", "2", "4"), what, w.Intn(3),
		w.pickOne("15ms", "150ms", "2s"))
}

// writeEvent is anything that may happen to the hosts.
func (w *scenarioWriter) writeEvent() {
	h, k := w.drawHost(), w.Intn(w.nets)
	switch w.Intn(22) {
	case 0, 1, 2:
		w.writeLine("send %s %s %s stream=%d path=%d %s", h, w.pickOne("1", "100", "1001", "3000", "9000"),
			w.pickOne("1", "2", "5"),
			w.Intn(5), max(w.Intn(8)-5, 0), w.pickOne("", "", "unordered", "life=30ms", "life=1s"))
	case 3:
		w.writeLine("pull %s %s %s", h, w.pickOne("100", "900", "2000"), w.pickOne("1", "3"))
	case 4, 5:
		w.writeRule()
	case 6:
		w.writeLine("cut %d", k)
	case 7:
		w.writeLine("heal %d", k)
	case 8:
		w.writeLine("path %s net=%d %s", h, k, w.pickOne("mark=1", "mark=0", "mtu=1280 quote=28", "mtu=1000",
			"mtu=9000",
			"delay=40ms", "delay=5ms", "rate=20000", "rate=0"))
	case 9:
		w.writeLine("%s", w.pickOne("link %s 1280", "link %s 1000", "link %s 5000")[:5]+h+
			w.pickOne(" 1280", " 1000", " 5000", " 600"))
	case 10:
		w.writeLine("%s", w.pickOne("primary ", "heartbeat ", "interval ")+h+
			fmt.Sprintf(" %d %s", k, w.pickOne("0s", "500ms", "-1s")))
	case 11:
		w.writeLine("squeeze %s %s", h, w.pickOne("on", "off", "off"))
	case 12:
		w.writeLine("read %s", h)
	case 13:
		w.writeLine("report %s %s %s", h, w.pickOne("toobig 1280", "toobig 600", "toobig 20", "proto 0"),
			w.pickOne("8", "20", "28"))
	case 14:
		switch w.Intn(6) {
		case 0:
			w.writeLine("shutdown %s", h)
		case 1:
			w.writeLine("abort %s because %s", h, w.pickOne("1", "300"))
		case 2:
			w.writeLine("renew %s %d", h, w.Intn(100))
			w.writeConnect(h)
		case 3:
			w.writeLine("norand %s %s", h, w.pickOne("on", "off"))
		case 4:
			w.writeLine("port %s %s", h, w.pickOne("0", "9899", "4000"))
		case 5:
			w.writeLine("%s %s", w.pickOne("timeout", "expire", "expire"), h)
			w.writeLine("unlisten %s", h)
		}
	default:
		w.writeForged(h, k)
	}
	w.writeLine("run %s", w.pickOne("0s", "0s", "1ms", "10ms", "30ms", "200ms", "1s", "5s"))
}

// writeForged is a packet of one chunk or a few that somebody has made up.
func (w *scenarioWriter) writeForged(h string, k int) {
	init := []string{"00000001 0000ffff 000a000a T0 ", "00000001 0000ffff 00010003 0000000%d ",
		"00000000 0000ffff 000a000a T0 ", "00000001 000005db 000a000a T0 ", "00000001 0000ffff 0000000a T0 ",
		"00000007 0000ffff 000a0000 T0 "}
	switch w.Intn(10) {
	case 0: // alone, with another tag than all
		params, n := w.drawParams()
		w.writeLine("forge %s %d tag=0x0 0100%04x %s%s", h, k, 20+n, w.pickOne(init...), params)
		return
	case 1:
		w.writeLine("forge %s %d tag=cookie C %s", h, k,
			w.pickOne("", "", "04000008 00000001", "08000004", "00030011 T1 00010000 00000007 61000000"))
		return
	case 2:
		params, n := w.drawParams()
		w.writeLine("forge %s %d 0200%04x %s0007000c 0102030405060708 %s", h, k, 32+n, w.pickOne(init...), params)
		return
	}
	var chunks []string
	for range 1 + w.Intn(3) {
		chunks = append(chunks, w.pickOne("00030012 T%d 000%d000%d 00000007 61620000",
			"00030012 T%d 000%d000%d 00000007 61620000", "00070011 T%d 00000000 00000007 61000000",
			"00030010 T%d 00000000 00000007", "0002000c T%d 00000000", "000b0011 T7 00010000 00000007 62000000",
			"00030011 T9999999 00000000 00000007 63000000",
			"03000010 U%d 0000ffff 00000000", "03000014 U%d 0000ffff 00010000 00020003",
			"03000014 U0 00000000 00000001 T%d", "0300000c U%d 0000ffff",
			"04000004", "0400000c 00010008 0102030%d", "040005b8 z1460", "0500000c 00010008 01020304",
			"0500002c 00010028 z36", "05000014 00010010 z12",
			"06000004", "06000008 000c0004", "06010004", "06000006 000c0000", "07000008 U%d", "07000006 U0",
			"08000004", "0900000c 0001000800070000", "0900000c 000300080000000%d", "0900000a 0006000900070000",
			"0900002c 000c0004000c0004000c0004000c0004000c0004000c0004000c0004000c0004000c0004000c0004",
			"06000028 000c0004000c0004000c0004000c0004000c0004000c0004000c0004000c0004000c0004",
			"09000008 000c0004", "09000004",
			"0a000008 01020304", "0b000004", "0c000008 U%d", "0d000008 T%d", "0c000006 z4", "0e000004", "0e010004",
			"8a000006 11220000", "ca000006 11220000", "4a000006 11220000", "0a000005 11000000",
			"84000005 00000000", "00000003"))
	}
	w.writeLine("%sforge %s %d tag=%s ecn=%s %s %s", w.pickOne("", "", "", "", "late "), h, k,
		w.pickOne("own", "own", "own", "own", "peer", "0x0", "0x1"), w.pickOne("0", "0", "3"),
		w.pickOne("", "", "", "", "", "from=10.9.9.9:0", "from=10.0.0.1:77", "times=3", "src=9", "dst=9"),
		strings.Join(chunks, " "))
}

// drawParams are those of an INIT, and their octets.
func (w *scenarioWriter) drawParams() (s string, n int) {
	for range w.Intn(4) {
		p := w.pickOne("000500080a01000%d", "000500087f000001", "00050008a9fe0901", "00050008c0a80901",
			"0005000864400901",
			"00060014fe80000000000000000000000000000%d", "00060014fd00000000000000000000000000000%d",
			"00060014 z15 01", "00050008e0000001", "000600142001000000000000000000000000000%d", "000900080000%d0f0",
			"000b000861620000", "000c00060005 0000", "000c000800050006", "80000004", "80080006 c1000000",
			"c0060008 0000000%d", "80010004", "c0010008 01020304", "4001000801020304", "0001000401020304",
			"c00100c8 z196", "8005000c 0102030405060708", "00050007 0a0100 00")
		if strings.HasPrefix(p, "0001000401020304") { // it lies about its length
			s, n = s+p+" ", n+4
			continue
		}
		s, n = s+p+" ", n+countOctets(p)
	}
	return s, n
}

// countOctets counts those of a list of digits.
func countOctets(p string) (n int) {
	for _, x := range strings.Fields(p) {
		if x[0] == 'z' {
			k := 0
			fmt.Sscan(x[1:], &k)
			n += k
		} else {
			n += len(x) / 2
		}
	}
	return n
}
