// Package chart makes a report that is one HTML file. It has plots as SVG, each with its figures in
// a table behind it, has no script and loads nothing. It adapts to the reader's colour scheme and
// the width of the screen. It escapes all text that it is given.
package chart

import (
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

var pageTemplate = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark; --fg: #1c1f23; --dim: #50565e; --bg: #fff; --card: #f6f7f9; --line: #d3d8de;
 --s0: #0b5cad; --s1: #b0440a; --s2: #17713a; --s3: #8a2c8c; --s4: #6a5a00; --s5: #a3203f }
@media (prefers-color-scheme: dark) { :root { --fg: #e8eaed; --dim: #b3bac3; --bg: #15181c; --card: #1e2227; --line: #3c434b;
 --s0: #74b6ff; --s1: #ffab73; --s2: #7fd99a; --s3: #e5a3e6; --s4: #e0cf66; --s5: #ff9db1 } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 90rem; padding: 1rem; font: 16px/1.45 system-ui, sans-serif; color: var(--fg); background: var(--bg) }
h1 { font-size: 1.5rem; line-height: 1.2; margin: .2em 0; overflow-wrap: anywhere }
h2 { font-size: 1.1rem; margin: 0 0 .3em }
p { margin: .3em 0; overflow-wrap: anywhere; max-width: 60rem }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); gap: 1rem; margin: 1rem 0 }
section { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .8rem; min-width: 0 }
@media (min-width: 56rem) { .broad { grid-column: span 2 } }
figure { margin: 0 }
svg { display: block; width: 100%; height: auto; max-width: 44rem }
svg text { font: 13px system-ui, sans-serif; fill: var(--dim) }
.axis { stroke: var(--dim); fill: none } .rule { stroke: var(--line); fill: none }
.curve { fill: none; stroke-width: 1.6; stroke-linejoin: round }
.s0 { stroke: var(--s0) } .s1 { stroke: var(--s1); stroke-dasharray: 7 3 } .s2 { stroke: var(--s2); stroke-dasharray: 2 3 }
.s3 { stroke: var(--s3); stroke-dasharray: 9 3 2 3 } .s4 { stroke: var(--s4); stroke-dasharray: 4 4 } .s5 { stroke: var(--s5); stroke-dasharray: 1 4 }
.bar { stroke-dasharray: none; fill: var(--s0) }
ul { list-style: none; display: flex; flex-wrap: wrap; gap: .1rem 1rem; margin: .2rem 0; padding: 0; font-size: .9rem }
ul svg { display: inline-block; width: 2rem; height: .7rem; margin-right: .4rem }
.wide { overflow: auto; max-height: 36rem }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .7rem .15rem 0; text-align: right; vertical-align: top; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { text-align: left }
.words th, .words td { text-align: left }
.pairs td { overflow-wrap: anywhere }
.words:not(.pairs) td:last-child { min-width: 16rem }
.pairs th { font-weight: normal; color: var(--dim) }
summary { cursor: pointer; font-size: .9rem; padding: .4rem 0 }
footer { color: var(--dim); font-size: .9rem }
</style></head><body>
<header><h1>{{.Title}}</h1><p>{{.Lead}}</p></header>
<main>
<div class="grid">{{range .Tables}}
<section{{if .Head}} class="broad"{{end}}><h2>{{.Title}}</h2><div class="wide" tabindex="0" role="region" aria-label="{{.Title}}">{{template "table" .}}</div></section>{{end}}
</div>
<div class="grid">{{range .Plots}}
<section><figure aria-labelledby="h{{.ID}}"><figcaption><h2 id="h{{.ID}}">{{.Title}}</h2>{{with .Note}}<p>{{.}}</p>{{end}}
<ul aria-label="Legend of {{.Title}}">{{range .Curves}}<li><svg viewBox="0 0 32 10" aria-hidden="true"><path class="curve {{.Class}}" d="M0 5H32"/></svg>{{.Name}}</li>{{end}}</ul></figcaption>
<svg viewBox="0 0 {{.Width}} {{.Height}}" role="img" aria-label="{{.Says}}">
{{range .YTicks}}<path class="rule" d="M{{$.Left}} {{.Pos}}H{{$.Right}}"/><text x="{{$.Beside}}" y="{{.Text}}" text-anchor="end">{{.Label}}</text>{{end}}
{{range .XTicks}}<path class="axis" d="M{{.Pos}} {{$.Bottom}}v5"/><text x="{{.Pos}}" y="{{$.Below}}" text-anchor="middle">{{.Label}}</text>{{end}}
<path class="axis" d="M{{$.Left}} {{$.Top}}V{{$.Bottom}}H{{$.Right}}"/>
{{range .Curves}}<path class="curve {{.Class}}" d="{{.Path}}"/>{{end}}
<text x="2" y="12">{{.YLabel}}</text><text x="{{$.Right}}" y="{{$.Under}}" text-anchor="end">{{.XLabel}}</text>
</svg></figure>
<details><summary>{{.Title}}, as a table</summary><div class="wide" tabindex="0" role="region" aria-label="{{.Title}}, as a table">{{template "table" .Table}}</div></details></section>{{end}}
</div>
</main>
<footer>{{range .Notes}}<p>{{.}}</p>{{end}}</footer>
</body></html>
{{define "table"}}<table{{if not .Head}} class="pairs words"{{else if .Words}} class="words"{{end}}>{{with .Head}}<thead><tr>{{range .}}<th scope="col">{{.}}</th>{{end}}</tr></thead>{{end}}<tbody>
{{range .Rows}}<tr>{{range $i, $c := .}}{{if $i}}<td>{{$c}}</td>{{else}}<th scope="row">{{$c}}</th>{{end}}{{end}}</tr>
{{end}}</tbody></table>{{end}}`))
