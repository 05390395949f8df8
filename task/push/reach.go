package push

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Reach says which addresses a client may connect to. It is checked when a
// connection is made, on the address that the name has then, so that a name that
// changes its address between check and use gains nothing (DNS rebinding).
type Reach uint8

const (
	// Public is the default: addresses of the public internet only.
	Public Reach = iota
	// Private adds this machine and private networks, but not link-local addresses,
	// where clouds keep the credentials of a machine.
	Private
	// Anywhere is for addresses that the operator configured.
	Anywhere
)

var errRefused = errors.New("this address is refused")

// dialer connects within reach.
func (r Reach) dialer() *net.Dialer {
	return &net.Dialer{
		Timeout: 10 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: %s", errRefused, address)
			}
			if !r.allows(at.Addr()) {
				return fmt.Errorf("%w: %s is not a public address", errRefused, at.Addr())
			}
			return nil
		},
	}
}

func (r Reach) allows(a netip.Addr) bool {
	a = embedded(a.WithZone("").Unmap())
	switch {
	case r == Anywhere:
		return true
	case within(a, special), a.IsLinkLocalUnicast(), a.IsMulticast(), a.IsUnspecified():
		return false
	case within(a, private), a.IsLoopback(), a.IsPrivate():
		return r == Private
	}
	return a.Is4() || within(a, global6)
}

// embedded gives the IPv4 address that a NAT64 or 6to4 address leads to.
func embedded(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	b := a.As16()
	switch {
	case within(a, nat64):
		return netip.AddrFrom4([4]byte(b[12:]))
	case within(a, sixToFour):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a
}

// Ranges beyond those that net/netip knows (RFC 6890 and its registries).
var (
	nat64     = prefixes("64:ff9b::/96")
	sixToFour = prefixes("2002::/16")
	global6   = prefixes("2000::/3")
	private   = prefixes("100.64.0.0/10", "198.18.0.0/15")
	special   = prefixes(
		"0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"100.100.100.200/32", // the metadata of a cloud
		"fd00:ec2::/32",      // likewise
		"2001::/23", "2001:db8::/32", "3fff::/20",
	)
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		list[i] = netip.MustParsePrefix(t)
	}
	return list
}

func within(a netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
