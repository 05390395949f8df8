package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/keyring"
)

type doctorCmd struct {
	settingsFlags `embed:""`
}

func (doctorCmd) Help() string {
	return `It changes nothing. It fails (exit code 1) when something would keep the server from working.

Examples:
  forebay doctor
  DATABASE_URL=postgres://app:secret@db/shop forebay doctor --data /var/lib/forebay`
}

// grade is how a check went.
type grade string

const (
	gradeOK   grade = "ok"
	gradeWarn grade = "warn"
	gradeFail grade = "fail"
)

// finding is one line of the doctor.
type finding struct {
	Check string `json:"check"`
	Grade grade  `json:"grade"`
	Says  string `json:"says"`
	Do    string `json:"do,omitempty"`
}

func (c *doctorCmd) Run(ctx context.Context, p *program) error {
	settings, err := c.load(p)
	if err != nil {
		return err
	}
	d := &doctor{settings: settings, dir: settings.Data.Dir}
	if f, runs := findServer(ctx, d.dir); runs {
		d.server = &f
	}
	var all []finding
	for _, check := range []func(context.Context) finding{
		d.folder, d.disk, d.flush, d.durability, d.clock, d.port, d.files, d.keys, d.database, d.images,
	} {
		all = append(all, check(ctx))
	}
	all = append(all, d.shared(ctx)...)
	all = append(all, d.redis(ctx)...)
	all = append(all, d.postgres(ctx)...)
	all = append(all, d.encryption(ctx)...)
	failed := 0
	err = p.print(all, func(w io.Writer) {
		for _, f := range all {
			colour := map[grade]string{gradeOK: green, gradeWarn: amber, gradeFail: red}[f.Grade]
			fmt.Fprintf(w, "%s\t%s\t%s\n", p.paint(colour, string(f.Grade)), f.Check, f.Says)
			if f.Do != "" {
				fmt.Fprintf(w, "%s\t\t  %s\n", p.paint(dim, " "), f.Do)
			}
		}
	})
	for _, f := range all {
		if f.Grade == gradeFail {
			failed++
		}
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d checks failed", failed, len(all))
	}
	return err
}

// doctor checks one machine and its settings.
type doctor struct {
	settings *config.Settings
	dir      string
	server   *serverFile // that runs on the data folder; nil: none
}

func ok(check, format string, args ...any) finding {
	return finding{Check: check, Grade: gradeOK, Says: fmt.Sprintf(format, args...)}
}

func warn(check, do, format string, args ...any) finding {
	return finding{Check: check, Grade: gradeWarn, Says: fmt.Sprintf(format, args...), Do: do}
}

func fail(check, do string, err error) finding {
	return finding{Check: check, Grade: gradeFail, Says: err.Error(), Do: do}
}

func (d *doctor) folder(context.Context) finding {
	const name = "data folder"
	abs, err := filepath.Abs(d.dir)
	if err != nil {
		return fail(name, "", err)
	}
	if _, err := os.Stat(d.dir); errors.Is(err, os.ErrNotExist) {
		return ok(name, "%s does not exist yet; the server makes it", abs)
	}
	if err := makeFolder(d.dir); err != nil {
		return fail(name, hintOf(err), err)
	}
	if d.server != nil {
		return ok(name, "%s, in use by process %d at %s", abs, d.server.PID, d.server.URL)
	}
	return ok(name, "%s can be written; no server runs on it", abs)
}

// existing is the data folder, or the nearest one above it that exists.
func (d *doctor) existing() string {
	dir, err := filepath.Abs(d.dir)
	for err == nil {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

func (d *doctor) disk(context.Context) finding {
	const name = "disk"
	free, err := freeSpace(d.existing())
	if errors.Is(err, errors.ErrUnsupported) {
		return warn(name, "", "the free space is not known on this system")
	}
	if err != nil {
		return fail(name, "", err)
	}
	reserve := d.settings.Data.Reserve
	text := fmt.Sprintf("%s free, %s to stay free (data.reserve)", humanize.IBytes(uint64(free)), humanize.IBytes(uint64(reserve)))
	switch {
	case free < reserve:
		return fail(name, "make room, or events are answered with 503", errors.New(text))
	case free < 4*reserve:
		return warn(name, "a database that is away for long fills the rest", "%s", text)
	}
	return ok(name, "%s", text)
}

// flush measures how long the disk takes to make a small write durable: the time
// that a lone event waits for its 202.
func (d *doctor) flush(context.Context) finding {
	const name, tries = "flush", 50
	f, err := os.CreateTemp(d.existing(), ".probe-*")
	if err != nil {
		return fail(name, "", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	took := make([]time.Duration, tries)
	for i := range took {
		begun := time.Now()
		_, err := f.Write(make([]byte, 4096))
		if err == nil {
			err = f.Sync()
		}
		if err != nil {
			return fail(name, "", err)
		}
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	median := took[tries/2]
	text := fmt.Sprintf("%.2f ms for a durable write, %.2f ms at worst", ms(median), ms(took[tries-1]))
	if median > 10*time.Millisecond {
		return warn(name, "a faster disk, or batches: events of one moment share a flush", "%s", text)
	}
	return ok(name, "%s", text)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (d *doctor) durability(context.Context) finding {
	if d.settings.Data.Durability == "full" {
		return ok("durability", "full: what was answered with 202 survives a power loss")
	}
	return warn("durability", "data.durability: full", "process: a power loss may take the last seconds")
}

// clock compares with what was written last here: a clock that went back makes
// ages and windows wrong.
func (d *doctor) clock(context.Context) finding {
	const name = "clock"
	now := time.Now()
	if info, err := os.Stat(filepath.Join(d.dir, queueFile)); err == nil && info.ModTime().After(now.Add(time.Minute)) {
		return fail(name, "set the clock (NTP)", fmt.Errorf("the queue was written at %s, but it is %s", info.ModTime().UTC(), now.UTC()))
	}
	if now.Year() < 2025 {
		return fail(name, "set the clock (NTP)", fmt.Errorf("it says %s", now.UTC()))
	}
	return ok(name, "%s", now.UTC().Format(time.RFC3339))
}

func (d *doctor) port(context.Context) finding {
	const name = "port"
	if d.server != nil {
		return ok(name, "%s, the running server", d.server.URL)
	}
	keys, err := hasKeys(filepath.Join(d.dir, keysFile))
	if err != nil {
		return fail(name, "", err)
	}
	l, err := listen(d.settings, keys)
	if err != nil {
		return fail(name, hintOf(err), err)
	}
	addr := l.Addr()
	if err := l.Close(); err != nil {
		return fail(name, "", err)
	}
	return ok(name, "%s is free", addr)
}

func (d *doctor) files(context.Context) finding {
	const name, least = "open files", 4096
	n, err := openFiles()
	if errors.Is(err, errors.ErrUnsupported) {
		return ok(name, "no limit that is known here")
	}
	if err != nil {
		return fail(name, "", err)
	}
	if n < least {
		return warn(name, "ulimit -n 65536, or LimitNOFILE= of systemd", "%d; each client connection needs one", n)
	}
	return ok(name, "%d", n)
}

func (d *doctor) keys(context.Context) finding {
	const name = "keys"
	path := filepath.Join(d.dir, keysFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return d.noKeys()
	}
	ring, err := keyring.Open(path, keyring.Config{})
	if err != nil {
		return fail(name, hintOf(err), err)
	}
	defer ring.Close()
	live := 0
	for _, k := range ring.List() {
		if k.Live() {
			live++
		}
	}
	if live == 0 {
		return d.noKeys()
	}
	return ok(name, "%d live", live)
}

func (d *doctor) noKeys() finding {
	if isLoopback(d.settings.Address(false)) {
		return ok("keys", "none: everyone on this machine may send and look")
	}
	return warn("keys", "forebay keys add NAME", "none, and %s can be reached from elsewhere", d.settings.Address(false))
}

// database asks the sink's database whether a row could be written.
func (d *doctor) database(ctx context.Context) finding {
	const name = "database"
	if d.settings.Sink.URL == "" {
		return ok(name, "SQLite, %s in the data folder", eventsFile)
	}
	ctx, cancel := context.WithTimeout(ctx, sinkTimeout)
	defer cancel()
	says, err := inspectPostgres(ctx, d.settings.Sink.URL)
	if err != nil {
		return fail(name, "events are accepted and wait until it answers; check sink.url and the server", err)
	}
	return ok(name, "%s", says)
}
