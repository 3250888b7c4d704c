package cli

import (
	"github.com/rddp-go/rddp/sctp/cc"
)

// controllerFlag is a congestion controller by name.
type controllerFlag struct {
	name    string
	factory cc.Factory // nil: the default
}

func (c *controllerFlag) String() string { return c.name }
func (c *controllerFlag) Type() string   { return "name" }

// Set chooses the controller.
func (c *controllerFlag) Set(name string) error {
	f := cc.Named(name)
	if f == nil {
		return Usagef("it is cubic, newreno, rfc9260 or bbr")
	}
	c.name, c.factory = name, f
	return nil
}
