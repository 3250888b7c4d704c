package random

import (
	"fmt"
	"strings"
	"time"
)

// Schedule is a whole world, written down.
type Schedule struct {
	Seed   uint64        // of what is random within: tags, contents, the luck of each packet
	Length time.Duration // then the network heals, everything is brought to its end, and the world ends
	Hosts  []Host
	Assocs []Assoc
	Acts   []Act // in the order of their times
}

// Host is a machine.
type Host struct {
	Nets int  // networks that it is on, 1 to 3
	NAT  bool // it is behind a NAT: one network, and everything through UDP
	MTU  int  // of its own links, IP-level octets; 0: 1500
}

// Assoc is an association that host A sets up with host B, again and again if need be, or TCP
// connections that either sets up.
type Assoc struct {
	Use    Use
	A, B   int
	UDP    bool   // through UDP (RFC 6951)
	Config uint64 // from which the limits and timers of both ends follow; 0: the defaults
	Extras int    // of both ends, see setExtras; 0: none
	Keys   int    // of both ends, see setKeys; 0: all goes in the clear
}

// Use is what an association is for.
type Use uint8

const (
	Messages Use = iota // messages of plain SCTP
	Both                // the same, and both ends set the association up, at the same time too
	RDMA
	RDMAOverTCP // of the ways that the hosts have, the first
)

// Act is what somebody does or what goes wrong at a time.
type Act struct {
	At   time.Duration
	Kind Kind
	A, B int           // Kind says of what
	Net  int           // the network of a fault; -1: all that the hosts are on
	For  time.Duration // how long it lasts
	N    int           // how much
}

// Kind is the kind of an Act.
type Kind uint8

const (
	// Of association A: what its users do. B is the side, 0 or 1.
	Say    Kind = iota // N messages within For
	Work               // RDMA: N operations, and B sessions more
	Starve             // the user of a side reads nothing for so long
	Hangup             // a graceful shutdown
	Hurl               // an abort

	// Of host A.
	Crash  // everything is forgotten; the host is back after For
	Jump   // its clock jumps forward by For
	Rebind // its NAT gives it another port
	Roam   // its NAT gets another address
	Isolate

	// Of the way from host A to host B, one direction.
	Loss      // N percent
	Burst     // losses in bursts
	Route     // another route: N milliseconds more
	Jitter    // up to N milliseconds
	Rate      // N KB/s, and a queue to match
	Duplicate // N percent arrive twice
	Reorder   // N percent are overtaken
	Late      // N percent arrive a minute or more later
	Corrupt   // N percent have an octet changed
	Mark      // N percent are marked by ECN
	MTU       // N octets, with ICMP
	Hole      // N octets, without
	Mute      // nothing arrives
	Cut       // nothing arrives in either direction, what is under way neither
	kinds
)

var kindNames = [...]string{"Say", "Work", "Starve", "Hangup", "Hurl", "Crash", "Jump", "Rebind", "Roam", "Isolate",
	"Loss", "Burst", "Route", "Jitter", "Rate", "Duplicate", "Reorder", "Late", "Corrupt", "Mark", "MTU", "Hole",
	"Mute", "Cut"}

func (k Kind) String() string { return kindNames[k] }

// ofHost reports whether the A of an act is a host, ofWay whether A and B are.
func (k Kind) ofHost() bool { return k >= Crash && k <= Isolate }
func (k Kind) ofWay() bool  { return k >= Loss }

// mixSeed mixes numbers into one from which something random is to follow.
func mixSeed(v ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, x := range v {
		h ^= x
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// seedOf is where what is random within an act begins.
func (a *Act) seedOf(s *Schedule) uint64 {
	return mixSeed(s.Seed, uint64(a.At), uint64(a.Kind), uint64(a.A), uint64(a.B), uint64(a.N))
}

// Literal is the schedule as Go source.
func (s *Schedule) Literal(pkg string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%sSchedule{Seed: %#x, Length: %d,\n", pkg, s.Seed, s.Length)
	fmt.Fprintf(&b, "\tHosts: []%sHost{", pkg)
	for i, h := range s.Hosts {
		fmt.Fprintf(&b, "%s%s", []string{", ", ""}[b2i(i == 0)], fieldList("Nets", h.Nets, "NAT", h.NAT, "MTU", h.MTU))
	}
	fmt.Fprintf(&b, "},\n\tAssocs: []%sAssoc{", pkg)
	for i, a := range s.Assocs {
		use := any(nil)
		if a.Use != Messages {
			use = pkg + []string{"Messages", "Both", "RDMA", "RDMAOverTCP"}[a.Use]
		}
		fmt.Fprintf(&b, "%s%s", []string{", ", ""}[b2i(i == 0)],
			fieldList("Use", use, "A", a.A, "B", a.B, "UDP", a.UDP, "Config", a.Config, "Extras", a.Extras, "Keys", a.Keys))
	}
	fmt.Fprintf(&b, "},\n\tActs: []%sAct{\n", pkg)
	for _, a := range s.Acts {
		fmt.Fprintf(&b, "\t\t%s,\n", fieldList("At", int64(a.At), "Kind", pkg+a.Kind.String(), "A", a.A, "B", a.B,
			"Net",
			a.Net, "For", int64(a.For), "N", a.N))
	}
	b.WriteString("\t}}")
	return b.String()
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fieldList writes a composite literal of the fields that are not zero.
func fieldList(list ...any) string {
	var f []string
	for i := 0; i < len(list); i += 2 {
		switch v := list[i+1].(type) {
		case nil:
		case int:
			if v != 0 {
				f = append(f, fmt.Sprintf("%v: %d", list[i], v))
			}
		case int64:
			if v != 0 {
				f = append(f, fmt.Sprintf("%v: %d", list[i], v))
			}
		case uint64:
			if v != 0 {
				f = append(f, fmt.Sprintf("%v: %#x", list[i], v))
			}
		case bool:
			if v {
				f = append(f, fmt.Sprintf("%v: true", list[i]))
			}
		default:
			f = append(f, fmt.Sprintf("%v: %v", list[i], v))
		}
	}
	return "{" + strings.Join(f, ", ") + "}"
}

// Test is the schedule as a Go test to paste.
func (s *Schedule) Test(name string) string {
	return fmt.Sprintf(
		"func Test%s(t *testing.T) {\n\ts := %s\n\tif v := s.Run().Violation; v != nil {\n\t\tt.Error(v)\n\t}\n}\n",
		name, strings.ReplaceAll(s.Literal("prove."), "\n", "\n\t"))
}
