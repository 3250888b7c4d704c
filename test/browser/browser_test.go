package browser

import (
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

// Nothing on the pages offends axe's rules for WCAG 2 A and AA, on a phone and on a desk, in the
// light and in the dark; nothing is wider than the screen, no page asks for anything but itself,
// and the console stays empty.
func TestPagesAreFitToBeSeen(t *testing.T) {
	axe, err := os.ReadFile("axe.min.js")
	if err != nil {
		t.Fatalf("%v: run install.sh", err)
	}
	pages := pages(t)
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)
	allocated, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	defer cancel()
	browser, end := chromedp.NewContext(allocated)
	defer end()
	must(t, chromedp.Do(browser)) // each page has a tab of its own in it
	for name, url := range pages {
		for _, width := range []int64{360, 1280} {
			for _, scheme := range []string{"light", "dark"} {
				t.Run(fmt.Sprintf("%s at %d %s", name, width, scheme), func(t *testing.T) {
					look(t, browser, string(axe), url, name, width, scheme)
				})
			}
		}
	}
}
