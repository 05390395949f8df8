package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// serverFile is how commands on the same machine find the server that owns a data
// folder and get in without a key: who can read the folder may look after it.
type serverFile struct {
	PID       int       `json:"pid"`
	URL       string    `json:"url"`
	Token     string    `json:"token"` // an admin key of this start
	Version   string    `json:"version"`
	StartedAt time.Time `json:"startedAt"`
}

func serverPath(dir string) string { return filepath.Join(dir, "server.json") }

func newServerFile(addr net.Addr, now time.Time) serverFile {
	return serverFile{PID: os.Getpid(), URL: localURL(addr), Token: rand.Text(), Version: built().Version, StartedAt: now.UTC()}
}

// localURL is where a program on this machine reaches a listener.
func localURL(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "http://" + addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// write puts the file into the folder as a whole, readable by its owner only.
func (f serverFile) write(dir string) error {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	tmp := serverPath(dir) + ".new"
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, serverPath(dir))
}

// remove takes the file away unless another server has written its own meanwhile.
func (f serverFile) remove(dir string) error {
	if now, err := readServerFile(dir); err != nil || now.Token != f.Token {
		return nil
	}
	if err := os.Remove(serverPath(dir)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func readServerFile(dir string) (serverFile, error) {
	var f serverFile
	b, err := os.ReadFile(serverPath(dir))
	if err != nil {
		return f, err
	}
	return f, json.Unmarshal(b, &f)
}

// findServer finds the server that owns a data folder. A file that a killed one has
// left behind is no server.
func findServer(ctx context.Context, dir string) (serverFile, bool) {
	f, err := readServerFile(dir)
	if err != nil {
		return f, false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL+"/healthz", nil)
	if err != nil {
		return f, false
	}
	resp, err := http.DefaultClient.Do(req)
	return f, err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// series reads one series of the server's metrics, without labels.
func (f serverFile) series(ctx context.Context, name string) (float64, bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL+"/metrics", nil)
	if err != nil {
		return 0, false
	}
	req.Header.Set("Authorization", "Bearer "+f.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, false
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			v, err := strconv.ParseFloat(text, 64)
			return v, err == nil
		}
	}
	return 0, false
}
