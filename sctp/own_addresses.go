package sctp

import (
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/sctp/assoc"
)

// AddressChanges adds addresses to an association with Config.TLS, and removes some (RFC 5061): see
// Conn.Extensions.
const AddressChanges = assoc.AddressChanges

// AddrRefusedError is the cause with which the peer has refused to change an address. It matches
// syscall.EADDRNOTAVAIL.
type AddrRefusedError = assoc.AddrRefusedError

// Errors of AddLocalAddr, RemoveLocalAddr and SetPeerPrimary, and of the events that say how they
// end.
var (
	// ErrAddrChangesUnsupported: the peer does not support it, or there is no Config.TLS.
	ErrAddrChangesUnsupported = assoc.ErrAddrChangesUnsupported
	// ErrAddrChangesBusy: too many changes wait.
	ErrAddrChangesBusy = assoc.ErrAddrChangesBusy
	// ErrLastLocalAddr: an association keeps one own address.
	ErrLastLocalAddr = assoc.ErrLastLocalAddr
	// ErrNoLocalAddr: the association has no such own address.
	ErrNoLocalAddr = assoc.ErrNoLocalAddr
	// ErrWildcardOnly: over UDP and netconn only 0.0.0.0 or :: names an own address.
	ErrWildcardOnly = assoc.ErrWildcardOnly
)

// AddLocalAddr asks the peer to take other addresses of this host for the association (RFC 5061),
// so that it goes on when others are lost. Both sides need Config.TLS. It does not wait:
// EventLocalAddrAdded says of each how it ends. Addresses that are named together go in one
// request, and one that the peer refuses does not keep the others out. Over UDP the address is
// 0.0.0.0 or ::, for the one that packets leave from now.
func (c *Conn) AddLocalAddr(addrs ...netip.Addr) error {
	named := slices.DeleteFunc(slices.Clone(addrs), netip.Addr.IsUnspecified)
	if err := c.t.checkLocalAddrs(named); err != nil {
		return err
	}
	if err := c.t.receiveAt(c, named); err != nil {
		return err
	}
	a, now := c.lock()
	defer c.unlock()
	return a.AddLocalAddr(now, addrs...)
}

// RemoveLocalAddr asks the peer to send to addresses of this host no more. Nothing leaves from
// there from now on. EventLocalAddrRemoved says of each how it ends. 0.0.0.0 or :: stands for all
// addresses but the one that packets leave from now.
func (c *Conn) RemoveLocalAddr(addrs ...netip.Addr) error {
	a, now := c.lock()
	defer c.unlock()
	return a.RemoveLocalAddr(now, addrs...)
}

// SetPeerPrimary asks the peer to send to an own address as long as that answers.
// EventPeerPrimarySet says how it ends.
func (c *Conn) SetPeerPrimary(addr netip.Addr) error {
	a, now := c.lock()
	defer c.unlock()
	return a.SetPeerPrimary(now, addr)
}
