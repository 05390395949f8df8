package push

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
)

func TestReach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		address         string
		public, private bool
	}{
		{"8.8.8.8", true, true},
		{"2606:4700::1111", true, true},
		{"::ffff:8.8.8.8", true, true},
		{"64:ff9b::808:808", true, true},
		{"127.0.0.1", false, true},
		{"127.9.9.9", false, true},
		{"::1", false, true},
		{"::ffff:127.0.0.1", false, true},
		{"64:ff9b::7f00:1", false, true},
		{"2002:7f00:1::1", false, true},
		{"10.1.2.3", false, true},
		{"172.16.0.1", false, true},
		{"172.32.0.1", true, true},
		{"192.168.1.1", false, true},
		{"100.64.0.1", false, true},
		{"198.18.0.1", false, true},
		{"fd12::1", false, true},
		{"169.254.169.254", false, false},
		{"::ffff:169.254.169.254", false, false},
		{"64:ff9b::a9fe:a9fe", false, false},
		{"fd00:ec2::254", false, false},
		{"100.100.100.200", false, false},
		{"fe80::1", false, false},
		{"fe80::1%eth0", false, false},
		{"fec0::1", false, false},
		{"0.0.0.0", false, false},
		{"0.1.2.3", false, false},
		{"::", false, false},
		{"224.0.0.1", false, false},
		{"ff02::1", false, false},
		{"255.255.255.255", false, false},
		{"240.0.0.1", false, false},
		{"192.0.0.170", false, false},
		{"2001:db8::1", false, false},
		{"2001::1", false, false},
		{"::7f00:1", false, false},
		{"64:ff9b:1::1", false, false},
	} {
		a := netip.MustParseAddr(c.address)
		if Public.allows(a) != c.public || Private.allows(a) != c.private || !Anywhere.allows(a) {
			t.Errorf("%s: public %t, private %t", c.address, Public.allows(a), Private.allows(a))
		}
	}
}

// The check is on the address that a name has when it is connected to, and before
// a byte is sent.
func TestANameThatLeadsHereIsRefused(t *testing.T) {
	t.Parallel()
	hits := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	t.Cleanup(s.Close)
	for _, host := range []string{"127.0.0.1", "localhost", "0x7f.1", "2130706433"} {
		c, err := NewClient(ClientConfig{Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Post(t.Context(), strings.Replace(s.URL, "127.0.0.1", host, 1), "m1", []byte("{}"))
		code := forebay.CauseOf(err, time.Time{}).Code
		if hits != 0 || code != "address_refused" && code != "unreachable" {
			t.Errorf("%s: %v", host, err)
		}
		if (host == "127.0.0.1" || host == "localhost") && (code != "address_refused" || !forebay.IsPermanent(err)) {
			t.Errorf("%s: %v is not a permanent refusal", host, err)
		}
	}
	private, err := NewClient(ClientConfig{Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, Reach: Private})
	if err != nil {
		t.Fatal(err)
	}
	defer private.Close()
	if _, err := private.Post(t.Context(), s.URL, "m1", []byte("{}")); err != nil || hits != 1 {
		t.Errorf("where it is allowed: %v", err)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"1", "-1", "Mon, 04 May 2099 03:02:01 GMT", "99999999999999999999", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if d, _ := retryAfter(header, time.Unix(1614265330, 0)); d < 0 || d > maxRetryAfter {
			t.Errorf("%q: %s", header, d)
		}
	})
}
