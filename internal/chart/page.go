// Package chart makes a report that is one HTML file. It has plots as SVG, each with its figures in
// a table behind it, has no script and loads nothing. It adapts to the reader's colour scheme and
// the width of the screen. It escapes all text that it is given.
package chart

import (
	_ "embed" // of the page
	"html/template"
	"io"
)

// Page is a report.
type Page struct {
	Title   string
	Lead    string // a sentence below it
	Tables  []Table
	Figures []Figure
	Notes   []string // below everything
}

// Table is a table. The first column names the rows.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
	Words bool // the cells are no numbers
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	v := view{Page: p}
	for i := range p.Figures {
		v.Plots = append(v.Plots, p.Figures[i].layOut(i+1))
	}
	return pageTemplate.Execute(w, v)
}

type view struct {
	*Page
	Plots []plot
}

var (
	//go:embed page.html
	pageHTML string

	pageTemplate = template.Must(template.New("").Parse(pageHTML))
)
