package api

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/filter"
)

// A filter that was found to match tells what is in payloads. So whoever may not see them
// whole cannot search by them, and what was searched for is written nowhere.

// jobFilter reads a filter, wherever a caller gives one.
func (a *API) jobFilter(ctx context.Context, text string) (engine.JobFilter, error) {
	f, err := filter.Parse(text, a.cfg.Now())
	if err == nil && len(f.Payload) > 0 && !seesWhole(ctx) {
		return engine.JobFilter{}, masks("a search by payload tells what is in it")
	}
	return f, err
}

// mayAskKey refuses a search for the user of events where it would tell what is hidden.
func (a *API) mayAskKey(ctx context.Context, key string) error {
	user := func(mask string) bool { return mask == "*" || hides(mask, []string{"userId"}) }
	if key == "" || seesWhole(ctx) || !slices.ContainsFunc(a.cfg.Mask, user) {
		return nil
	}
	return masks("a search by key tells the user in a payload")
}

// toldFilter is a filter as it may be told: without the values that payloads have.
func toldFilter(text string, now time.Time) string {
	if !strings.Contains(text, "payload") { // no quotes stand around a key
		return text
	}
	f, err := filter.Parse(text, now)
	if err != nil {
		return hidden
	}
	if len(f.Payload) == 0 {
		return text
	}
	for i := range f.Payload {
		f.Payload[i].Value = hidden
	}
	return filter.String(f)
}

// toldRaw is toldFilter for JSON.
func toldRaw(raw json.RawMessage, now time.Time) json.RawMessage {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil // no text is no filter
	}
	raw, _ = json.Marshal(toldFilter(text, now)) // a string always can be
	return raw
}

// maskFilters masks what was searched for in the data of our own jobs.
func (a *API) maskFilters(v any) {
	m, _ := v.(map[string]any)
	if inner, ok := m["json"]; ok {
		a.maskFilters(inner)
	}
	if text, ok := m["q"].(string); ok {
		m["q"] = toldFilter(text, a.cfg.Now())
	}
}
