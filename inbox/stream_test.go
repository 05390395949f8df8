package inbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/forebayhq/forebay/inbox"
)

// serve gives the address of an inbox, and a channel that tells of each request
// that has ended.
func serve(t *testing.T, b *inbox.Inbox) (address string, ended <-chan string) {
	t.Helper()
	mux := http.NewServeMux()
	b.Register(mux, func(h http.Handler) http.Handler { return h })
	done := make(chan string, 1000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { done <- r.URL.Path }()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		b.Close()
		s.Close()
	})
	return s.URL, done
}

func do(t *testing.T, method, address, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	b := open(t, inbox.Config{})
	put(t, b, "a/b", "m1", "m2")
	address, _ := serve(t, b)
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/api/inbox/a%2Fb", "", 200, `"id":"m1"`},
		{"GET", "/api/inbox/a%2Fb?after=0&limit=1", "", 200, `"more":true`},
		{"GET", "/api/inbox/nobody", "", 200, `"messages":[],"unread":0`},
		{"GET", "/api/inbox/ann?limit=0", "", 400, `"field":"limit"`},
		{"GET", "/api/inbox/ann?limit=x", "", 400, `"field":"limit"`},
		{"GET", "/api/inbox/ann?after=x", "", 400, `"field":"after"`},
		{"GET", "/api/inbox/a%0Ab", "", 400, `"field":"user"`},
		{"POST", "/api/inbox/a%2Fb/read", `{"ids":["m1"]}`, 200, `{"unread":1}`},
		{"POST", "/api/inbox/a%2Fb/read", `{"all":true}`, 200, `{"unread":0}`},
		{"POST", "/api/inbox/a%2Fb/read", `{"all":true,"read":false}`, 200, `{"unread":2}`},
		{"POST", "/api/inbox/ann/read", ``, 400, `"field":"body"`},
		{"POST", "/api/inbox/ann/read", `{}`, 400, `"field":"ids"`},
		{"POST", "/api/inbox/ann/read", `{"all":true,"ids":["m1"]}`, 400, `"field":"ids"`},
		{"POST", "/api/inbox/ann/read", `{"al":true}`, 400, `"field":"body"`},
		{"POST", "/api/inbox/ann/read", `{"ids":["` + strings.Repeat(`a","`, 2000) + `"]}`, 400, `"field":"ids"`},
		{"POST", "/api/inbox/ann/read", `{"ids":["` + strings.Repeat(`a`, 70_000) + `"]}`, 413, `"code":"too_large"`},
		{"GET", "/api/inbox/ann/stream?after=x", "", 400, `"field":"after"`},
		{"GET", "/api/inbox/ann/socket?after=x", "", 400, `"field":"after"`},
		{"GET", "/api/inbox/ann/socket", "", 426, ``},
	} {
		if status, text := do(t, c.method, address+c.path, c.body); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s %.60s: %d %s, want %d %s", c.method, c.path, c.body, status, text, c.status, c.want)
		}
	}
}

// client reads one stream of either kind.
type client struct {
	t     *testing.T
	next  func() (kind, place string, data map[string]any, err error)
	close func()
}

func (c *client) want(kind string) (place string, data map[string]any) {
	c.t.Helper()
	for {
		k, place, data, err := c.next()
		if err != nil {
			c.t.Fatalf("waiting for %s: %v", kind, err)
		}
		if k == kind {
			return place, data
		}
		if k != "ping" {
			c.t.Fatalf("got %s %v, want %s", k, data, kind)
		}
	}
}

func sse(t *testing.T, address, lastID string) *client {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", address+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %v", res.Status, res.Header)
	}
	t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	return &client{t, func() (kind, place string, data map[string]any, err error) {
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				kind = value
			case "id":
				place = value
			case "data":
				if err := json.Unmarshal([]byte(value), &data); err != nil {
					return "", "", nil, err
				}
			case "":
				if kind != "" {
					return kind, place, data, nil
				}
			}
		}
		if err := lines.Err(); err != nil {
			return "", "", nil, err
		}
		return "", "", nil, io.EOF
	}, cancel}
}

func socket(t *testing.T, address, after string) *client {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), address+"/socket?after="+after, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	return &client{t, func() (string, string, map[string]any, error) {
		_, text, err := conn.Read(t.Context())
		if err != nil {
			return "", "", nil, err
		}
		var f struct {
			Type, Place string
			Data        map[string]any
		}
		err = json.Unmarshal(text, &f)
		return f.Type, f.Place, f.Data, err
	}, func() { conn.CloseNow() }}
}

var both = map[string]func(*testing.T, string, string) *client{"stream": sse, "socket": socket}

func TestAStreamTellsAtOnce(t *testing.T) {
	t.Parallel()
	for name, connect := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, inbox.Config{})
			put(t, b, "ann", "m1")
			address, _ := serve(t, b)
			c := connect(t, address+"/api/inbox/ann", "")
			place, data := c.want("snapshot")
			if place == "" || data["unread"] != 1.0 || len(data["messages"].([]any)) != 1 {
				t.Errorf("snapshot %s %v", place, data)
			}
			put(t, b, "bob", "x")
			put(t, b, "ann", "m2")
			if place, data := c.want("message"); data["id"] != "m2" || place != data["place"] {
				t.Errorf("message %s %v", place, data)
			}
			if _, data := c.want("unread"); data["unread"] != 2.0 {
				t.Errorf("unread %v", data)
			}
			if _, err := b.Mark(t.Context(), "ann", nil, true); err != nil {
				t.Fatal(err)
			}
			if _, data := c.want("unread"); data["unread"] != 0.0 {
				t.Errorf("unread %v", data)
			}
		})
	}
}

// A client drops the stream again and again while messages come: it gets each once.
func TestAClientThatResumesMissesNothingAndGetsNothingTwice(t *testing.T) {
	t.Parallel()
	const total = 60
	for name, connect := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, inbox.Config{})
			address, _ := serve(t, b)
			address += "/api/inbox/ann"
			var g sync.WaitGroup
			defer g.Wait()
			g.Go(func() {
				for i := range total {
					if err := b.Put(t.Context(), "ann", fmt.Sprint("m", i), []byte(`{}`)); err != nil {
						t.Error(err)
						return
					}
				}
			})
			var got []string
			place := "0"
			for len(got) < total {
				c := connect(t, address, place)
				for n := 0; n < 7 && len(got) < total; {
					kind, at, data, err := c.next()
					if err != nil || kind == "reset" || kind == "snapshot" {
						t.Fatalf("%s: %v", kind, err)
					}
					if kind == "message" {
						got, place = append(got, data["id"].(string)), at
						n++
					}
				}
				c.close()
			}
			for i, id := range got {
				if id != fmt.Sprint("m", i) {
					t.Fatalf("got %v", got)
				}
			}
		})
	}
}

func TestAPlaceOfBeforeIsReset(t *testing.T) {
	t.Parallel()
	b := open(t, inbox.Config{})
	put(t, b, "ann", "m1")
	address, _ := serve(t, b)
	c := sse(t, address+"/api/inbox/ann", "another-7")
	c.want("reset")
	if _, data := c.want("snapshot"); len(data["messages"].([]any)) != 1 {
		t.Errorf("snapshot %v", data)
	}
	put(t, b, "ann", "m2")
	if _, data := c.want("message"); data["id"] != "m2" {
		t.Errorf("message %v", data)
	}
}

func TestWhatAnotherProcessStoredComesWithThePing(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	here, there := open(t, inbox.Config{Documents: docs, Ping: time.Millisecond}), open(t, inbox.Config{Documents: docs})
	address, _ := serve(t, here)
	for _, connect := range both {
		c := connect(t, address+"/api/inbox/ann", "0")
		c.want("unread")
		if kind, _, _, err := c.next(); kind != "ping" || err != nil {
			t.Errorf("%s, %v", kind, err)
		}
	}
	c := sse(t, address+"/api/inbox/ann", "0")
	c.want("unread")
	put(t, there, "ann", "m1")
	if _, data := c.want("message"); data["id"] != "m1" {
		t.Errorf("message %v", data)
	}
}

func TestCloseEndsAllStreams(t *testing.T) {
	t.Parallel()
	b := open(t, inbox.Config{})
	address, ended := serve(t, b)
	s, w := sse(t, address+"/api/inbox/ann", ""), socket(t, address+"/api/inbox/ann", "")
	s.want("snapshot")
	w.want("snapshot")
	read := make(chan error, 1)
	go func() {
		_, _, _, err := w.next()
		read <- err
	}()
	b.Close()
	<-ended
	<-ended
	if _, _, _, err := s.next(); err != io.EOF {
		t.Errorf("the stream: %v", err)
	}
	if err := <-read; websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("the socket: %v", err)
	}
	if status, text := do(t, "GET", address+"/api/inbox/ann/stream", ""); status != 503 || !strings.Contains(text, `"closed"`) {
		t.Errorf("a new one: %d %s", status, text)
	}
}

func TestASlowClientIsCutOffAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	b := open(t, inbox.Config{Documents: &memory{}, Write: 3 * time.Second})
	address, ended := serve(t, b)
	for _, path := range []string{
		"/api/inbox/ann/stream HTTP/1.1\r\nHost: x\r\n\r\n",
		"/api/inbox/ann/socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(conn, "GET %s", path)
	}
	fast := sse(t, address+"/api/inbox/ann", "")
	fast.want("snapshot")
	large := []byte(`"` + strings.Repeat("x", 16_000) + `"`)
	tell := func(id string) {
		t.Helper()
		if err := b.Put(t.Context(), "ann", id, large); err != nil {
			t.Fatal(err)
		}
		if _, data := fast.want("message"); data["id"] != id {
			t.Fatalf("the fast one got %v", data["id"])
		}
		fast.want("unread")
	}
	for n := range 400 { // more than the buffers between here and there hold
		tell(fmt.Sprint("m", n))
	}
	paths := []string{<-ended, <-ended}
	if slices.Sort(paths); paths[0] != "/api/inbox/ann/socket" || paths[1] != "/api/inbox/ann/stream" {
		t.Errorf("ended: %q", paths)
	}
	tell("after that")
}

func TestStreamsAreCounted(t *testing.T) {
	t.Parallel()
	b := open(t, inbox.Config{MaxStreams: 3, PerUser: 2})
	address, ended := serve(t, b)
	for _, user := range []string{"ann", "ann"} {
		sse(t, address+"/api/inbox/"+user, "").want("snapshot")
	}
	if status, text := do(t, "GET", address+"/api/inbox/ann/stream", ""); status != 429 || !strings.Contains(text, `"limited"`) {
		t.Errorf("a third one: %d %s", status, text)
	}
	<-ended
	c := sse(t, address+"/api/inbox/bob", "")
	c.want("snapshot")
	if status, text := do(t, "GET", address+"/api/inbox/carl/stream", ""); status != 503 || !strings.Contains(text, `"full"`) {
		t.Errorf("a fourth one: %d %s", status, text)
	}
	<-ended
	c.close()
	<-ended
	sse(t, address+"/api/inbox/carl", "").want("snapshot")
}

func TestPagesOfOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	b := open(t, inbox.Config{Origins: []string{"https://app.example.com"}})
	address, _ := serve(t, b)
	for origin, allowed := range map[string]bool{
		"https://app.example.com": true, address: true, "": true,
		"http://app.example.com": false, "https://evil.example": false, "https://app.example.com.evil.example": false, "null": false,
	} {
		h := http.Header{}
		if origin != "" {
			h.Set("Origin", origin)
		}
		conn, res, err := websocket.Dial(t.Context(), address+"/api/inbox/ann/socket", &websocket.DialOptions{HTTPHeader: h})
		if (err == nil) != allowed || err != nil && res.StatusCode != 403 {
			t.Errorf("origin %q: %v", origin, err)
		}
		if err == nil {
			conn.CloseNow()
		}
	}
}

func TestAClientThatTalksIsClosed(t *testing.T) {
	t.Parallel()
	b := open(t, inbox.Config{})
	address, ended := serve(t, b)
	conn, _, err := websocket.Dial(t.Context(), address+"/api/inbox/ann/socket", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"read":"all"}`)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, _, err = conn.Read(t.Context())
	}
	if websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("%v", err)
	}
	<-ended
}
