package cli

import (
	"github.com/rddp-go/rddp/sctp/cc"
)

// controller is a congestion controller by name.
type controller struct {
	name string
	make cc.Factory // nil: the default
}

func (c *controller) String() string { return c.name }
func (c *controller) Type() string   { return "name" }

// Set chooses the controller.
func (c *controller) Set(name string) error {
	f := map[string]cc.Factory{"newreno": cc.NewReno, "rfc9260": cc.RFC9260, "cubic": cc.NewCubic, "bbr": cc.NewBBR}[name]
	if f == nil {
		return Usagef("it is cubic, newreno, rfc9260 or bbr")
	}
	c.name, c.make = name, f
	return nil
}
