package attack

import (
	"flag"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/test/attack/attacker"
)

var (
	firstSeed = flag.Uint64("seed", 1, "first seed of TestNothingThatAnAttackerSendsHurts")
	seeds     = flag.Int("seeds", map[bool]int{false: 40, true: 10}[race.Enabled],
		"seeds of TestNothingThatAnAttackerSendsHurts")
	duration = flag.Duration("duration", 0, "for so long, instead of a number of seeds")
	packets  = flag.Int("packets", 3000, "of the attackers, for each seed")
)

func TestNothingThatAnAttackerSendsHurts(t *testing.T) {
	var all Stats
	var steps uint64
	var byOctet, heap float64
	n, start := 0, time.Now()
	for ; n < *seeds && *duration == 0 || time.Since(start) < *duration; n++ {
		seed := *firstSeed + uint64(n)
		s := ForSeed(seed)
		err := s.Run(*packets)
		must.That(t, err == nil, "seed %d: %v (go test ./test/attack -run Hurts -seed %d -seeds 1 -packets %d)", seed,
			err, seed, *packets)
		st := s.Stats()
		counters.Add(&all, &st)
		steps, byOctet, heap = max(steps, s.Worst.Steps), max(byOctet, s.Worst.ByOctet), max(heap, s.Worst.Heap)
	}
	t.Logf("%d seeds: %+v; at most %d steps at once, %.2f for an octet, %.2f times the memory that is said", n, all,
		steps, byOctet, heap)
	// What is not tried proves nothing.
	for what, times := range map[string]uint64{"associations": all.Associations, "ends": all.Ends,
		"restarts": all.Restarts, "sessions": all.Sessions,
		"receives": all.Receives, "sends": all.Sends, "changes of streams": 4 * all.Changes,
		"packets without a checksum": all.ZeroChecksums, "reads": all.Reads, "violations": all.Violations,
		"measurements of memory": all.Weighed, "answers to the friend": all.Friend} {
		check.That(t, times >= uint64(n), "%d seeds have seen %d %s", n, times, what)
	}
}

// Attackers on the path of an encrypted association, who send again, change and make up packets with
// its tags, and reports of ICMP about it: it goes on, and nothing that they add is heard.
func TestAttackersOnThePathHurtNoEncryptedFriend(t *testing.T) {
	var all Stats
	for n := range max(*seeds/4, 1) {
		seed := *firstSeed + uint64(n)
		s := NewOnPath(attacker.Seeded(seed))
		err := s.Run(*packets)
		must.That(t, err == nil, "seed %d: %v (go test ./test/attack -run OnThePath -seed %d -seeds 1 -packets %d)", seed,
			err, seed, *packets)
		st := s.Stats()
		counters.Add(&all, &st)
		a := s.friend.conn.a.Stats()
		check.That(t, a.NotOpened > 100 && a.Unprotected > 100 && a.Keys.Handshakes > 1, "%d records did not open, %d were in the clear, %d handshakes",
			a.NotOpened, a.Unprotected, a.Keys.Handshakes)
	}
	check.That(t, all.OnPath > all.Packets/2 && all.Friend > 0, "%+v", all)
}

func TestASeedThatHasFoundAFaultFindsItNoMore(t *testing.T) {
	for seed, begin := range map[uint64]func(*attacker.Choices) *Simulation{426: New, 50: NewWithMessages} {
		err := begin(attacker.Seeded(seed)).Run(3000)
		check.That(t, err == nil, "seed %d: %v", seed, err)
	}
}

// FuzzSiegeOfMessages lets the octets choose what attackers of a program with messages do.
//
// fuzz:covers ./sctp/assoc ./sctp/endpoint ./sctp/internal/rx ./sctp/internal/tx
// ./sctp/internal/reconfig
func FuzzSiegeOfMessages(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(attacker.Seeded(seed).Octets(2000))
	}
	f.Fuzz(func(t *testing.T, octets []byte) {
		must.OK(t, NewWithMessages(attacker.FromOctets(octets)).Run(1000))
	})
}

// FuzzSiege lets the octets choose what the attackers do.
//
// fuzz:covers ./sctp/assoc ./sctp/endpoint ./sctp/internal/rx ./sctp/internal/tx ./ddpadapt ./ddp
// ./rdma/rdmap
func FuzzSiege(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(attacker.Seeded(seed).Octets(2000))
	}
	f.Fuzz(func(t *testing.T, octets []byte) {
		must.OK(t, New(attacker.FromOctets(octets)).Run(1000))
	})
}
