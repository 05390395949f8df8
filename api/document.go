package api

import (
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// document describes an operation whose handler is not huma's.
func document[Out any](h huma.API, op huma.Operation, status int, media string) {
	schema := h.OpenAPI().Components.Schemas.Schema(typeOf[Out](), true, "")
	op.Responses[strconv.Itoa(status)] = &huma.Response{
		Description: "Done", Content: map[string]*huma.MediaType{media: {Schema: schema}},
	}
	h.OpenAPI().AddOperation(&op)
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// pathParam describes a part of a path for document.
func pathParam(name string) *huma.Param {
	return &huma.Param{Name: name, In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}}
}

// queryParam describes a query parameter for document.
func queryParam(name, doc string) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
}
