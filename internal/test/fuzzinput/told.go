package fuzzinput

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/race"
)

// Update is the flag -update of tests.
var Update = flag.Bool("update", false, "write down in testdata what happens now")

// CheckRecording compares what is told of so many seeds with a file that has a digest of each: what
// happened then is to happen now, to the octet. Where it does not, that is either a fault or meant;
// then -update writes it down anew. A test that tells one seed shows the difference. With -short
// and under the race detector, which sees no more in all of them, the first few do. It returns how
// many were told.
func CheckRecording(t *testing.T, file string, seeds int, tell func(seed int, told *strings.Builder)) int {
	t.Helper()
	if !*Update && (testing.Short() || race.Enabled) {
		seeds /= 8
	}
	told, err := os.ReadFile(file)
	if err != nil && !*Update {
		t.Fatal(err)
	}
	var now strings.Builder
	lines := strings.Split(string(told), "\n")
	wrong := 0
	for seed := range seeds {
		var story strings.Builder
		tell(seed, &story)
		h := fnv.New64a()
		h.Write([]byte(story.String()))
		line := fmt.Sprintf("%d %d %016x", seed, strings.Count(story.String(), "\n"), h.Sum64())
		fmt.Fprintln(&now, line)
		if *Update || seed < len(lines) && lines[seed] == line {
			continue
		}
		if wrong++; wrong == 1 {
			t.Errorf("the story of seed %d is otherwise (-update writes down what happens now)", seed)
		}
	}
	if wrong > 1 {
		t.Errorf("and %d more of %d", wrong-1, seeds)
	}
	if *Update {
		if err := os.WriteFile(file, []byte(now.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return seeds
}

// Line takes one of the lines, and for each # in it one of the numbers, or a little more.
func (s *Script) Line(lines []string, numbers []int) string {
	line := lines[s.Next()*s.Next()>>4%len(lines)]
	for strings.Contains(line, "#") {
		line = strings.Replace(line, "#", fmt.Sprint(numbers[s.Next()%len(numbers)]+s.Next()%3*s.Next()/32), 1)
	}
	return line
}
