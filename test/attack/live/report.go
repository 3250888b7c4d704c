//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// report is all rows and how they came about.
type report struct {
	Family  string  `json:"family"`
	Rate    int     `json:"rate"` // packets a second
	Quiet   float64 `json:"quiet"`
	Window  float64 `json:"window"` // seconds
	Rounds  int     `json:"rounds"`
	Machine string  `json:"machine"`
	Rows    []*row  `json:"rows"`
}

func (r *report) numFailed() (n int) {
	for _, row := range r.Rows {
		if len(row.Failures) > 0 {
			n++
		}
	}
	return n
}

// numByControl counts the rows whose throughput is below the bound and holds by comparison with the
// control.
func (r *report) numByControl() (n int) {
	for _, row := range r.Rows {
		if row.Base > 0 && row.Attack*100 < keepsPercent && len(row.Failures) == 0 {
			n++
		}
	}
	return n
}

// heading and cells are the table.
var heading = []string{"attack", "RFC, section", "packets", "reaction", "CPU us/packet", "times honest",
	"hold, steps", "hold, us", "heap KiB", "account KiB", "associations", "peak RSS MiB", "answers", "to others",
	"throughput", "control", "verdict"}

func (r *row) tableCells() []string {
	percent := func(v float64) string {
		if r.Base == 0 {
			return "-"
		}
		return fmt.Sprintf("%.0f%%", 100*v)
	}
	name := r.Name
	if r.UDP {
		name += " (udp)"
	}
	verdict := "holds"
	if v := r.Cost.undecodableRatio(); v > 0 {
		verdict = fmt.Sprintf("holds, %.1f times undecodable", v)
	}
	if len(r.Failures) > 0 {
		verdict = "FAILS: " + strings.Join(r.Failures, "; ")
		if r.Refused != "" {
			verdict += " (" + r.Refused + ")"
		}
	}
	list := append([]string{name, r.RFC, fmt.Sprint(r.Packets), r.Reaction}, r.Cost.tableCells()...)
	return append(list, fmt.Sprint(r.PeakRSS>>20), fmt.Sprintf("%.2f", r.Echo), fmt.Sprintf("%.2f", r.Third),
		percent(r.Attack), percent(r.Control), verdict)
}

func (r *report) writeText(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(heading, "\t"))
	for _, row := range r.Rows {
		fmt.Fprintln(tw, strings.Join(row.tableCells(), "\t"))
	}
	tw.Flush()
	fmt.Fprintf(w, "%d attacks over %s, %d failed\n", len(r.Rows), r.Family, r.numFailed())
}

func (r *report) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "\t")
	return enc.Encode(r)
}

// Marks around what this program writes into a document.
const (
	docsBegin = "<!-- hostile: written by make hostile -->"
	docsEnd   = "<!-- end of hostile -->"
)

const notes = `The attacker shares two processors with the victim and the honest client, which is silent at first.

- *Packets* are those that are sent then, as fast as they can be, without those that set
  associations up.
- *Reaction* is what the victim sent because of them, up to three kinds, *Terminate* by layer, type
  and code.
- *CPU* is the victim's processor time in user and kernel mode over the whole attack, set-up
  included, less what it takes at rest. The kernel's share of receiving that runs in the attacker's
  send is not in it.
- *Times honest* is that time divided by what as many messages in packets of the same lengths take.
  They are sent right afterwards, at the same moments, to a program that reads them. 10 at most.
- *Hold* is the longest time that the lock of one association was held, while its program and its
  packets wait. It is in steps, the pieces of work that a peer can cause (chunks, gap blocks, TSNs,
  messages, paths looked at), and in time of a processor, of which a millisecond is the most.
- *Heap* is what is alive after a garbage collection with the attack still standing, less what was
  before it. It is at most 1.25 times the *account* (` + "`Transport.Memory`" + `) and 16 KiB for each of the
  *associations*, beside 320 KiB of packet batches that a Transport keeps to use again.
- *Answers* are the octets sent back for each octet of the attack, IP headers included. *To others*
  are those of them that went to third parties and to the client.
- *Throughput* is what a greedy transfer keeps beside the attack: each window compared with the
  undisturbed ones around it, the median of them. *Control* is what it keeps beside as many packets
  of the same average length for a port that nobody has: what the rate alone takes.

Where time is beyond its limit it is measured three times, and the one in the middle counts. Up to
six times the windows are taken while the verdict is not reached.

A verdict of *holds* means:

- No association or session of the client was lost or slowed below 80%, or below 80% of the control
  where that too is below 80%. Its messages arrived as sent.
- The victim's memory is unchanged, and nothing left it that was not exposed.
- Third parties got no more packets than the attacker sent, and no more octets than the attack's
  bound. That is none; as many as were sent, where there is an answer; 4 to 1 for INIT ACK.
- No other kind of packet was seen than the RFC asks for.`

func (r *report) docSection() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n## Attacks over real links\n\n`make hostile` attacks a server over a real link, between "+
		"network namespaces.\n%s, %d packets a second,\n%.0f in the quiet phase, at least %d windows of %.2g s. "+
		"%d attacks, %d failed.\nIn %d rows the control too is below %d%%, and the verdict is by comparison with "+
		"it.\n\n",
		docsBegin, r.Machine, r.Rate, float64(r.Rate)*r.Quiet, r.Rounds, r.Window, len(r.Rows), r.numFailed(),
		r.numByControl(), keepsPercent)
	fmt.Fprintf(&b, "| %s |\n%s|\n", strings.Join(heading, " | "), strings.Repeat("|---", len(heading)))
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row.tableCells(), " | "))
	}
	fmt.Fprintf(&b, "\n%s\n%s", notes, docsEnd)
	return b.String()
}

// insertSection puts section in the place of the one that doc has, or else at its end.
func insertSection(doc, section string) string {
	begin, end := strings.Index(doc, docsBegin), strings.Index(doc, docsEnd)
	if begin >= 0 && end > begin {
		return doc[:begin] + section + doc[end+len(docsEnd):]
	}
	if doc != "" {
		doc = strings.TrimRight(doc, "\n") + "\n\n"
	}
	return doc + section + "\n"
}

// writeDocs puts the table into a document, which need not exist.
func (r *report) writeDocs(file string) error {
	doc, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(file, []byte(insertSection(string(doc), r.docSection())), 0o644)
}
