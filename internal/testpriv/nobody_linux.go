package testpriv

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// AsNobody runs f without any privilege: the test binary runs the calling test alone once more, as the user nobody.
func AsNobody(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	const child = "TESTPRIV_NOBODY"
	if os.Getenv(child) != "" {
		f(t)
		return
	}
	Require(t, "CAP_SETUID")
	exe, err := os.Open("/proc/self/exe") // nobody may not be able to walk to the binary's folder
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	cmd := exec.Command("/proc/self/fd/3", "-test.run=^"+t.Name()+"$")
	cmd.ExtraFiles = []*os.File{exe}
	cmd.Dir = "/"
	cmd.Env = []string{child + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
