//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// query asks the database past the network. each is called with the rows, or is nil.
func (s *stand) query(ctx context.Context, sql string, each func(pgx.Rows) error, args ...any) error {
	conn, err := pgx.Connect(ctx, s.table)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if each == nil {
		_, err := conn.Exec(ctx, sql, args...)
		return err
	}
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// rows of a round, in the order of the transactions that wrote them.
func (s *stand) rows(ctx context.Context, round string) (all []row, err error) {
	err = s.query(ctx, `SELECT event_id, coalesce(user_id, ''), xmin::text FROM events WHERE event_id >= $1 AND event_id < $2 ORDER BY xmin::text::bigint`,
		func(r pgx.Rows) error {
			var one row
			all = append(all, one)
			last := &all[len(all)-1]
			return r.Scan(&last.id, &last.user, &last.tx)
		}, round+"-", round+".")
	return all, err
}

// listed goes over a list of the API, newest first, on all nodes that take events, and counts
// the ids of a round. A server that keeps its own may have an id once, and so may another: when the
// answer to an ack is lost, the message comes again, to whoever asks (docs/sqs.md).
func (s *stand) listed(ctx context.Context, path, round string, id func(item) string) (map[string]int, error) {
	count := map[string]int{}
	for _, n := range s.nodes {
		if !strings.Contains(n.roles, "ingest") {
			continue
		}
		own := map[string]int{}
		for before := int64(0); ; {
			var page struct {
				Items []item
				Next  int64
			}
			at := ""
			if before > 0 {
				at = fmt.Sprint("&before=", before)
			}
			if err := ask(ctx, http.MethodGet, n.url()+path+"limit=200"+at, nil, &page); err != nil {
				return nil, err
			}
			mine := 0
			for _, it := range page.Items {
				if strings.HasPrefix(id(it), round+"-") {
					own[id(it)]++
					mine++
				}
			}
			if before = page.Next; before == 0 || mine == 0 {
				break
			}
		}
		for id, n := range own {
			count[id] = max(count[id], n)
		}
	}
	return count, nil
}

// item is a dead letter, or a bad row.
type item struct {
	EventID string
	Message struct{ ID string }
}

func (s *stand) deadEvents(ctx context.Context, round string) (map[string]int, error) {
	return s.listed(ctx, "/api/dead?queue=events&", round, func(i item) string { return i.Message.ID })
}

func (s *stand) badRows(ctx context.Context, round string) (map[string]int, error) {
	return s.listed(ctx, "/api/bad?", round, func(i item) string { return i.EventID })
}

// ends asks for jobs, several at once; nil stands for one that the server does not know.
func (s *stand) ends(ctx context.Context, ids []string) (map[string]*ended, error) {
	const atOnce = 4
	var mu sync.Mutex // guards all and first
	all := make(map[string]*ended, len(ids))
	var first error
	next := make(chan string, len(ids))
	for _, id := range ids {
		next <- id
	}
	close(next)
	var asking sync.WaitGroup
	for range atOnce {
		asking.Go(func() {
			for id := range next {
				e := &ended{}
				err := ask(ctx, http.MethodGet, s.nodes[0].url()+"/api/jobs/"+url.PathEscape(id), nil, e)
				if said(err) == http.StatusNotFound {
					e, err = nil, nil
				}
				mu.Lock()
				all[id] = e
				if err != nil && first == nil {
					first = err
				}
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	return all, first
}

// history is all that the program tells of the subject of a finding.
func (s *stand) history(ctx context.Context, f finding) string {
	n := s.nodes[0]
	switch {
	case f.Rule == "flow":
		return n.forebay(ctx, "flow", "show", f.Subject)
	case f.Rule == "limit" || f.Rule == "request" || f.Rule == "schedule" || f.Rule == "process" || strings.HasPrefix(f.Subject, "node"):
		return ""
	case strings.Contains(f.Text, "event"):
		var all strings.Builder
		for _, n := range s.nodes {
			if strings.Contains(n.roles, "api") {
				all.WriteString(n.name + ": " + n.forebay(ctx, "events", "where", f.Subject))
			}
		}
		return all.String()
	}
	text := n.forebay(ctx, "jobs", "get", f.Subject, "--logs", "--history")
	if f.Beside != "" {
		text += n.forebay(ctx, "jobs", "get", f.Beside, "--logs", "--history")
	}
	return text
}
