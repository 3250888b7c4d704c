package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
)

// retired are words that this project once used for things that have a name in the field. Each means
// nothing else. The glossary has the names that replaced them.
var retired = []string{
	"befall", "befalls", "befell", "befalling", "cession", "disown", "disowned", "doom", "duesoon", "dueheap",
	"foe", "gambled", "goOn", "letSack", "pushUp", "ripe", "ripen", "sighting", "takeOff", "tenant", "throng",
	"unlockSoon",
	"waitsInVain", "withheldQueued", "bare pump", "hostile hour", "lab book", "in vain", "amid", "of who", "for who",
}

// A word of our own is not used again, in a name, a comment or a document.
func TestNoRetiredWords(t *testing.T) {
	race.Alone(t)
	word := regexp.MustCompile(`(?i)\b(` + strings.Join(retired, "|") + `)\b`)
	others := regexp.MustCompile(
		`for who := range|docs/dev/(experiments|scoreboard)\.md$|CHANGELOG\.md$|test/arch/words_test\.go$`)
	files := 0
	must.OK(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "testdata"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" && filepath.Ext(path) != ".md", others.MatchString(filepath.ToSlash(path)):
			return nil
		}
		files++
		for i, line := range strings.Split(string(must.Get(os.ReadFile(path))(t)), "\n") {
			if found := word.FindString(line); found != "" && !others.MatchString(line) {
				check.That(t, false, "%s:%d: %q: see docs/dev/glossary.md for the word that engineers know", path,
					i+1, found)
			}
		}
		return nil
	}))
	check.That(t, files > 500, "%d files", files)
}
