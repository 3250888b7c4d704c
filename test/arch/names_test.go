package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// history lists the documents that tell of the past, with the names of the past.
var history = []string{"experiments.md", "scoreboard.md", "wan.md"}

var (
	fenced   = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	codeSpan = regexp.MustCompile("(?s)`([^`]+)`")
	filePath = regexp.MustCompile(`^[\w.*-]+(/[\w.*-]+)+/?$|^[\w-]+\.(go|md|sh|txt|tsv)$`)
	pageLink = regexp.MustCompile(`\]\(([\w./-]+)\)`)
	dotted   = regexp.MustCompile(`\b[A-Za-z]\w*\.[A-Za-z]\w*\b`)
	goFile   = regexp.MustCompile(`\b\w+\.go\b`)
	camel    = regexp.MustCompile(`\b[a-z]+[a-z0-9]*[A-Z]\w*\b`)
)

// A name in a page for developers is one that the code has, in its text and in its pictures.
func TestPagesForDevelopersNameWhatExists(t *testing.T) {
	names, checked := declaredNames(t), 0
	for page, text := range developerPages(t) {
		for _, b := range fenced.FindAllStringSubmatch(text, -1) {
			if b[1] == "" { // a picture
				checked += names.checkText(t, page, b[2])
			}
		}
		for _, m := range pageLink.FindAllStringSubmatch(text, -1) {
			check.That(t, pathExists(page, m[1]), "%s links to %s, which is not there", page, m[1])
		}
		for _, m := range codeSpan.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			file, _, _ := strings.Cut(m[1], ":")
			switch {
			case strings.ContainsAny(m[1], " \n") || strings.HasPrefix(m[1], "./"): // a command
			case filePath.MatchString(file):
				checked++
				check.That(t, pathExists(page, file), "%s names the file %s, which is not there", page, file)
			case !strings.ContainsAny(m[1], "=-/"):
				checked += names.checkText(t, page, m[1])
			}
		}
	}
	check.That(t, checked > 300, "%d names checked", checked)
}

// The Go code in a page for developers is that of a file which the page names, and the fault that
// one shows is a fault.
func TestPagesForDevelopersQuoteTheCode(t *testing.T) {
	quotations, faults := 0, []byte(nil)
	for _, path := range must.Get(filepath.Glob(filepath.Join(root, "test/mutants/faults/*.txt")))(t) {
		faults = append(faults, must.Get(os.ReadFile(path))(t)...)
	}
	for page, text := range developerPages(t) {
		var code []byte
		for _, m := range codeSpan.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			if file, _, _ := strings.Cut(m[1], ":"); strings.HasSuffix(file, ".go") && filePath.MatchString(file) {
				src, _ := os.ReadFile(filepath.Join(root, file))
				code = append(code, src...)
			}
		}
		for _, b := range fenced.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(b[2], "fault ") {
				quotations++
				check.That(t, bytes.Contains(faults, []byte(b[2])), "%s quotes a fault that is not there:\n%s", page,
					b[2])
			}
			if b[1] == "go" {
				quotations++
				check.That(t, bytes.Contains(code, []byte(b[2])), "%s quotes what no file that it names has:\n%s",
					page, b[2])
			}
		}
	}
	check.That(t, quotations > 5, "%d quotations", quotations)
}

// The picture of the imports in docs/dev/modules.md is the table that TestImportsOnlyGoDown holds.
func TestPictureOfTheImportsIsTheirTable(t *testing.T) {
	picture := fenced.FindStringSubmatch(
		string(must.Get(os.ReadFile(filepath.Join(root, "docs/dev/modules.md")))(t)))[2]
	var drawn [][]string
	for line := range strings.Lines(picture) {
		var pkgs []string
		for _, w := range strings.Fields(line) {
			if layerOf(w) < 0 && !slices.ContainsFunc(layers, func(l []string) bool { return slices.Contains(l, w) }) {
				break // words about them
			}
			pkgs = append(pkgs, w)
		}
		if len(pkgs) > 0 {
			drawn = append(drawn, pkgs)
		}
	}
	must.That(t, len(drawn) == len(layers), "%d lines of packages, and %d layers", len(drawn), len(layers))
	for i, pkgs := range drawn {
		for _, p := range pkgs {
			check.That(t, slices.Contains(layers[i], p), "line %d has %s, which is in another layer", i+1, p)
		}
	}
}

// Each suite and each measurement has a page.
func TestSuitesHaveAPage(t *testing.T) {
	for _, dir := range []string{"test", "bench"} {
		for _, e := range must.Get(os.ReadDir(filepath.Join(root, dir)))(t) {
			if page := filepath.Join(dir, e.Name(), "README.md"); e.IsDir() {
				check.That(t, pathExists("", page), "there is no %s", page)
			}
		}
	}
}

// developerPages are the texts of docs/dev, test, bench and fuzz, by path.
func developerPages(t *testing.T) map[string]string {
	pages := make(map[string]string)
	for _, pattern := range []string{"docs/dev/*.md", "test/README.md", "test/*/README.md", "bench/README.md",
		"bench/*/README.md", "fuzz/README.md", "internal/test/README.md"} {
		for _, path := range must.Get(filepath.Glob(filepath.Join(root, pattern)))(t) {
			if !slices.Contains(history, filepath.Base(path)) {
				rel, _ := filepath.Rel(root, path)
				pages[filepath.ToSlash(rel)] = string(must.Get(os.ReadFile(path))(t))
			}
		}
	}
	must.That(t, len(pages) >= 30, "%d pages", len(pages))
	return pages
}

// pathExists says whether a page may name a file or folder: from the root, from beside the page, or
// of the standard library.
func pathExists(page, file string) bool {
	top, _, nested := strings.Cut(file, "/")
	if _, err := os.Stat(filepath.Join(root, top)); err != nil && nested && filepath.Ext(file) == "" {
		return true // such as math/rand
	}
	for _, base := range []string{root, filepath.Join(root, filepath.Dir(page))} {
		if found, _ := filepath.Glob(filepath.Join(base, file)); len(found) > 0 {
			return true
		}
	}
	return false
}

// nameSet is what the code of all packages declares.
type nameSet struct {
	all     map[string]bool // by name
	members map[string]bool // by "Type.member" and "package.name"
	owners  map[string]bool // types and packages
	files   map[string]bool // names of Go files
}

// checkText looks for the names in a text, and returns how many it has looked up.
func (n *nameSet) checkText(t *testing.T, page, text string) (checked int) {
	for _, w := range dotted.FindAllString(text, -1) {
		owner, _, _ := strings.Cut(w, ".")
		if !n.owners[owner] {
			continue // of the standard library
		}
		checked++
		check.That(t, n.members[w], "%s: there is no %s", page, w)
	}
	for _, w := range goFile.FindAllString(text, -1) {
		checked++
		check.That(t, n.files[w], "%s: there is no file %s", page, w)
	}
	for _, w := range camel.FindAllString(text, -1) {
		checked++
		check.That(t, n.all[w], "%s: nothing is called %s", page, w)
	}
	return checked
}

// declaredNames reads all Go files.
func declaredNames(t *testing.T) *nameSet {
	n := &nameSet{make(map[string]bool), make(map[string]bool), make(map[string]bool), make(map[string]bool)}
	add := func(owner, name string) {
		n.all[name], n.members[owner+"."+name], n.owners[owner] = true, true, true
	}
	must.OK(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		n.files[filepath.Base(path)] = true
		pkg := strings.TrimSuffix(f.Name.Name, "_test")
		ast.Inspect(f, func(x ast.Node) bool {
			switch x := x.(type) {
			case *ast.FuncDecl:
				add(pkg, x.Name.Name)
				if x.Recv != nil {
					add(receiverType(x.Recv.List[0].Type), x.Name.Name)
				}
			case *ast.TypeSpec:
				add(pkg, x.Name.Name)
				n.addMembers(x.Name.Name, x.Type, add)
			case *ast.ValueSpec:
				for _, id := range x.Names {
					add(pkg, id.Name)
				}
			}
			return true
		})
		return nil
	}))
	return n
}

// addMembers adds the fields of a struct, or the methods of an interface.
func (n *nameSet) addMembers(owner string, typ ast.Expr, add func(owner, name string)) {
	var list *ast.FieldList
	switch typ := typ.(type) {
	case *ast.StructType:
		list = typ.Fields
	case *ast.InterfaceType:
		list = typ.Methods
	default:
		return
	}
	for _, f := range list.List {
		for _, id := range f.Names {
			add(owner, id.Name)
		}
	}
}

// receiverType is the name of the type of a method.
func receiverType(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiverType(x.X)
	case *ast.IndexExpr:
		return receiverType(x.X)
	case *ast.IndexListExpr:
		return receiverType(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}
