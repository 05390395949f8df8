package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract is a transport that holds every answer to the OpenAPI document: the
// tests' clients use it, so each test is a test of the document too.
type contract struct {
	t        *testing.T
	mux      *http.ServeMux // finds the path template of a request
	compiler *jsonschema.Compiler
	mu       sync.Mutex
	schemas  map[string]*jsonschema.Schema
}

func newContract(t *testing.T) *contract {
	t.Helper()
	file := must[*os.File](t)(os.Open("testdata/openapi.json"))
	defer file.Close()
	doc := must[any](t)(jsonschema.UnmarshalJSON(file))
	c := &contract{t: t, mux: http.NewServeMux(), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	if err := c.compiler.AddResource("mem:///openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	for path, operations := range doc.(map[string]any)["paths"].(map[string]any) {
		for method := range operations.(map[string]any) {
			c.mux.Handle(strings.ToUpper(method)+" "+path, http.NotFoundHandler())
		}
	}
	return c
}

func (c *contract) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !strings.HasPrefix(r.URL.Path, "/api/") || resp.Header.Get("Content-Type") == "text/event-stream" {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err := c.hold(r, resp, body); err != nil {
		c.t.Errorf("%s %s answers %d: %v\n%.2000s", r.Method, r.URL, resp.StatusCode, err, body)
	}
	return resp, err
}

func (c *contract) hold(r *http.Request, resp *http.Response, body []byte) error {
	_, pattern := c.mux.Handler(r)
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		return errors.New("the document has no such operation")
	}
	media := resp.Header.Get("Content-Type")
	status := strconv.Itoa(resp.StatusCode)
	if media == "application/problem+json" {
		status = "default"
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace
	schema, err := c.schema(fmt.Sprintf("mem:///openapi.json#/paths/%s/%s/responses/%s/content/%s/schema",
		escape(path), strings.ToLower(method), status, escape(media)))
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

func (c *contract) schema(url string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.schemas[url]; s != nil {
		return s, nil
	}
	s, err := c.compiler.Compile(url)
	if err == nil {
		c.schemas[url] = s
	}
	return s, err
}
