package report

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/forebayhq/forebay/task"
)

const maxParamBytes = 64 << 10

// param of a query.
type param struct{ name, typ string }

func parseParam(text string) (param, error) {
	name, typ, ok := strings.Cut(text, ":")
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	if !ok || name == "" || strings.Trim(name, plain) != "" {
		return param{}, errors.New("it is not of the form name:type")
	}
	switch typ {
	case "text", "int", "float", "bool", "date", "time":
		return param{name, typ}, nil
	}
	return param{}, errors.New("the type is none of text, int, float, bool, date and time")
}

// arguments gives the values of a query's parameters, in their order. Null is one
// for every type; one that is not given is a mistake, and so is one too many.
func arguments(params []param, given map[string]any) ([]any, error) {
	args := make([]any, len(params))
	known := map[string]bool{}
	for i, p := range params {
		known[p.name] = true
		v, ok := given[p.name]
		if !ok {
			return nil, task.BadData("params."+p.name, "it is not given; the report needs it (null is allowed)")
		}
		var err error
		if args[i], err = p.value(v); err != nil {
			return nil, task.BadData("params."+p.name, "%w", err)
		}
	}
	for name := range given {
		if !known[name] {
			return nil, task.BadData("params", "the report has no parameter %.80q", name)
		}
	}
	return args, nil
}

func (p param) value(v any) (any, error) {
	text, isText := v.(string)
	number, isNumber := v.(float64)
	switch {
	case v == nil:
		return nil, nil
	case len(text) > maxParamBytes || strings.ContainsRune(text, 0):
		return nil, fmt.Errorf("a text of %d bytes; up to %d without a NUL are allowed", len(text), maxParamBytes)
	case p.typ == "text" && isText:
		return text, nil
	case p.typ == "float" && isNumber:
		return number, nil
	case p.typ == "int" && isNumber && number == math.Trunc(number) && math.Abs(number) <= 1<<53:
		return int64(number), nil
	case p.typ == "bool":
		if b, ok := v.(bool); ok {
			return b, nil
		}
	case p.typ == "date" && isText:
		if t, err := time.Parse(time.DateOnly, text); err == nil {
			return pgtype.Date{Time: t, Valid: true}, nil
		}
	case p.typ == "time" && isText:
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return t.UTC(), nil
		}
	}
	return nil, fmt.Errorf("it is not a value of the type %s", p.typ)
}
