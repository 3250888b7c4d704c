package arch

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
)

// release is the version that the modules require of each other.
const release = "v0.1.0"

// paid are the modules that a program which imports ours has in its go.sum, beside ours.
var paid = regexp.MustCompile(
	`^(github\.com/klauspost/crc32|github\.com/vishvananda/net(link|ns)|golang\.org/x/(crypto|net|sys)) `)

// releasedEnv is an environment for the go command in which our modules are released. The others
// come from the module cache, or from where they always come from.
func releasedEnv(t *testing.T) (env []string) {
	goCommand(t, root, nil, "list", "-deps", "-test", "./...", "./cmd/...") // brings what is missing there
	cache := strings.TrimSpace(goCommand(t, root, nil, "env", "GOMODCACHE"))
	proxy := t.TempDir()
	for _, m := range []string{"", "cmd/", "metrics/"} {
		publishModule(t, filepath.Join(root, m), strings.TrimSuffix(module+m, "/"), proxy)
	}
	return []string{"GOWORK=off", "GOMODCACHE=" + t.TempDir(), "GOFLAGS=-modcacherw", "GOSUMDB=off", "GOBIN=",
		"GOPROXY=file://" + proxy + ",file://" + cache + "/cache/download," +
			strings.TrimSpace(goCommand(t, root, nil, "env", "GOPROXY"))}
}

// publishModule puts the module in dir into a folder that the go command reads as a module proxy.
func publishModule(t *testing.T, dir, path, proxy string) {
	to := filepath.Join(proxy, path, "@v")
	must.OK(t, os.MkdirAll(to, 0o755))
	for name, text := range map[string]string{
		"list": release, release + ".info": fmt.Sprintf(`{"Version":%q}`, release),
		release + ".mod": string(must.Get(os.ReadFile(filepath.Join(dir, "go.mod")))(t)),
	} {
		must.OK(t, os.WriteFile(filepath.Join(to, name), []byte(text), 0o644))
	}
	file := must.Get(os.Create(filepath.Join(to, release+".zip")))(t)
	w := zip.NewWriter(file)
	must.OK(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && name != dir || d.Name() == ".git" ||
			d.Name() == "bin" || d.Name() == "testdata" {
			return fs.SkipDir
		}
		for _, e := range must.Get(os.ReadDir(name))(t) {
			if e.Type().IsRegular() {
				in := filepath.Join(name, e.Name())
				rel, _ := filepath.Rel(dir, in)
				must.Do(must.Get(w.Create(path + "@" + release + "/" + filepath.ToSlash(rel)))(t).Write(
					must.Get(os.ReadFile(in))(t)))(t)
			}
		}
		return nil
	}))
	must.OK(t, w.Close())
	must.OK(t, file.Close())
}

func goCommand(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	c := exec.Command("go", args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	must.That(t, err == nil, "go %s: %v\n%s", strings.Join(args, " "), err, &said)
	return string(out)
}

// What the tools and the tests need is not in the go.sum of a program that imports every package
// that is made for that, but those of metrics.
func TestAnImporterHasFewModules(t *testing.T) {
	race.Alone(t)
	env, dir := releasedEnv(t), t.TempDir()
	src := "package main\n"
	for _, pkg := range face {
		if pkg != "metrics" {
			src += fmt.Sprintf("import _ %q\n", module+pkg)
		}
	}
	must.OK(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(src+"func main() {}\n"), 0o644))
	must.OK(t, os.WriteFile(filepath.Join(dir, "go.mod"),
		[]byte("module importer.test\n\ngo 1.26.0\n\nrequire github.com/rddp-go/rddp "+release+"\n"), 0o644))
	goCommand(t, dir, env, "mod", "tidy")
	all := goCommand(t, dir, env, "list", "-m", "all")
	check.That(t, strings.Count(all, "\n") <= 15, "more than 15 modules:\n%s", all)
	for line := range strings.Lines(string(must.Get(os.ReadFile(filepath.Join(dir, "go.sum")))(t))) {
		check.That(t, strings.HasPrefix(line, strings.TrimSuffix(module, "/")+" ") || paid.MatchString(line),
			"in the importer's go.sum: %s", line)
	}
	goCommand(t, dir, env, "build", "-n", ".")
}

// Nobody can install from a module that replaces another.
func TestToolsCanBeInstalled(t *testing.T) {
	race.Alone(t)
	if testing.Short() {
		t.Skip("unpacks all that the tools are made of")
	}
	env := releasedEnv(t)
	for _, tool := range []string{"cmd/ddpping", "cmd/ddpbench", "examples/rcopy"} {
		goCommand(t, t.TempDir(), env, "install", "-n", module+tool+"@"+release)
	}
}

// What measures us beside pion/sctp uses that, and not the module here that takes its place.
func TestBenchHasTheOriginal(t *testing.T) {
	for _, env := range [][]string{nil, {"GOWORK=off"}} {
		m := strings.TrimSpace(goCommand(t, filepath.Join(root, "bench"), env, "list", "-m", "github.com/pion/sctp"))
		check.That(t, regexp.MustCompile(`^github\.com/pion/sctp v\d+\.\d+\.\d+$`).MatchString(m), "%v: %q is no version",
			env, m)
	}
}
