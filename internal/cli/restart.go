package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
)

// RestartFlags are the flags that keep keys for a restart of encrypted associations after a crash.
type RestartFlags struct {
	folder string
}

// Add defines the flags.
func (f *RestartFlags) Add(fs *pflag.FlagSet) {
	fs.StringVar(&f.folder, "restart-keys", "",
		"with --cert, keep keys in this `folder`, by which the other side, if it keeps some too, lets this one in "+
			"at once after a crash")
}

// checkRestart refuses what could restart nothing.
func (f *LinkFlags) checkRestart(server bool) error {
	switch {
	case server && f.LocalPort != 0:
		return Usagef("--local-port is for a client: --port says where a server listens")
	case f.Restart.folder == "":
	case !f.Encryption.isOn():
		return Usagef("--restart-keys keeps keys of encrypted associations: give --cert and --key too")
	case f.Encryption.certFile == "":
		return Usagef("--restart-keys needs --cert and --key: a certificate that is made for each run is another " +
			"after a crash")
	case !server && f.LocalPort == 0:
		return Usagef("--restart-keys needs --local-port at a client: the other side finds the association by " +
			"its ports")
	}
	return nil
}

// applyTo has the associations of a device keep their keys, if they are to.
func (f *RestartFlags) applyTo(c *rdma.Config) error {
	if f.folder == "" {
		return nil
	}
	store, err := sctp.NewFileRestartStore(f.folder)
	if err != nil {
		return fmt.Errorf("--restart-keys %s: %w", f.folder, err)
	}
	c.SCTP.RestartStore = store
	return nil
}
