package exec

import (
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/worker"
)

func TestWhichLinesAreForUs(t *testing.T) {
	t.Parallel()
	for line, ours := range map[string]bool{
		`{"progress":1}`: true,
		`{"progress":0,"stage":"a","message":"b"}`: true,
		`{"stage":"a"}`:                     true,
		`{"result":null}`:                   true,
		`{"result":{"a":1}}`:                true,
		`{"error":"x","retryAfter":1}`:      true,
		`{"message":"x"}`:                   false,
		`{"progress":"1"}`:                  false,
		`{"progress":1,"progress":2}`:       false,
		`{"progress":1,"level":"info"}`:     false,
		`{"progress":1,"result":2}`:         false,
		`{"error":"x","progress":1}`:        false,
		`{"error":"x","time":"2026-05-04"}`: false,
		`{"retryAfter":1}`:                  false,
		`{"progress":1`:                     false,
		`{"progress":1} x`:                  false,
		`{}`:                                false,
		`[]`:                                false,
		`1`:                                 false,
		``:                                  false,
	} {
		if _, ok := parse([]byte(line)); ok != ours {
			t.Errorf("%s: %t", line, ok)
		}
	}
}

// Whatever a program writes, and in whatever pieces: bounds hold, nothing panics,
// and the pieces make no difference.
func FuzzOutput(f *testing.F) {
	for _, s := range []string{"{\"progress\":1e9,\"stage\":\"\xff\"}\n{\"result\":[1]}", "{\"error\":\"é\"}\n\n", "x\r\n", "{\"result\"", "{\"progress\":-3,\"data\":{}}\n"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		run := func(piece int) (o *output, told []string) {
			j := worker.NewJob(forebay.Delivery{}, func(p *forebay.Progress, l *forebay.LogLine) {
				switch {
				case p != nil:
					if p.Percent < 0 || p.Percent > 100 || len(p.Stage) > forebay.MaxStageBytes || len(p.Message) > forebay.MaxTextBytes {
						t.Errorf("progress %+v", p)
					}
					told = append(told, "progress "+p.Stage+p.Message+string(p.Data))
				case len(l.Text) > forebay.MaxLogBytes || strings.ContainsRune(l.Text, '\n') || strings.ToValidUTF8(l.Text, "") != l.Text:
					t.Errorf("log %q", l.Text)
				default:
					told = append(told, "log "+l.Text)
				}
			})
			o = newOutput(j, 1<<20)
			s := o.stream(forebay.MaxLogBytes, o.told)
			for rest := data; len(rest) > 0; {
				n := min(piece, len(rest))
				if _, err := s.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			o.flush()
			return o, told
		}
		a, toldA := run(len(data) + 1)
		b, toldB := run(max(1, piece%16))
		if strings.Join(toldA, "\n") != strings.Join(toldB, "\n") || string(a.result) != string(b.result) || a.why != b.why {
			t.Errorf("in pieces it is read in another way:\n%q\n%q", toldA, toldB)
		}
	})
}
