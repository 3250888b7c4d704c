package sctp

import (
	"fmt"
	"os"

	"github.com/rddp-go/rddp/sctp/cc"
)

// controllerVariable chooses the congestion control of each association that begins from then on,
// for which the original has no option.
const controllerVariable = "RDDP_CC"

// setByEnvironment takes over what the user of the program has set.
func (s *settings) setByEnvironment() error {
	name := os.Getenv(controllerVariable)
	if name == "" {
		return nil
	}
	if s.newController = cc.Named(name); s.newController == nil {
		return fmt.Errorf("sctp: %s is %q; it may be cubic, newreno, rfc9260 or bbr", controllerVariable, name)
	}
	return nil
}
