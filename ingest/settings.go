package ingest

import (
	"net/http"

	"github.com/go-json-experiment/json"
)

// settings answers what web and mobile SDKs fetch before they send their first
// event: that there is one destination, and that it is here. Without it they never
// send. There is no secret in it, so it needs no key.
func (e *Edge) settings(w http.ResponseWriter, r *http.Request) {
	e.allowOrigin(w, r)
	var b []byte
	var err error
	if key := r.PathValue("key"); key != "" {
		b, err = json.Marshal(segmentSettings(key, r.Host), json.Deterministic(true))
	} else {
		b, err = json.Marshal(rudderSettings(r.URL.Query().Get("writeKey")), json.Deterministic(true))
	}
	if err != nil { // the key in the address is not UTF-8
		unreadable("the write key in the address is not text").write(w, false)
		return
	}
	w.Header()["Content-Type"] = jsonType
	_, _ = w.Write(append(b, '\n')) // a client that has gone needs no answer
}

type object = map[string]any

func segmentSettings(key, host string) object {
	return object{
		"integrations": object{"Segment.io": object{
			"apiKey": key, "apiHost": host + "/v1", "type": "browser",
			"unbundledIntegrations": []string{}, "addBundledMetadata": true,
			"versionSettings": object{"version": "4.4.7", "componentTypes": []string{"browser"}},
		}},
		"plan": object{
			"track":    object{"__default": object{"enabled": true, "integrations": object{}}},
			"identify": object{"__default": object{"enabled": true}},
			"group":    object{"__default": object{"enabled": true}},
		},
		"edgeFunction":              object{},
		"analyticsNextEnabled":      true,
		"middlewareSettings":        object{"routingRules": []any{}},
		"enabledMiddleware":         object{},
		"metrics":                   object{"sampleRate": 0},
		"legacyVideoPluginsEnabled": false,
		"remotePlugins":             []any{},
	}
}

func rudderSettings(key string) object {
	return object{
		"isHosted": true,
		"source": object{
			"id": key, "name": "forebay", "writeKey": key, "enabled": true, "workspaceId": "forebay",
			"config":       object{"statsCollection": object{"errors": object{"enabled": false}, "metrics": object{"enabled": false}}},
			"connections":  []any{},
			"destinations": []any{},
			"dataplanes":   object{},
		},
	}
}
