package flow

import _ "embed" // schema.json

//go:embed schema.json
var fileSchema []byte

// Schema is the JSON Schema of the file, for editors. It holds what can be said of
// the form alone; Load knows more.
func Schema() []byte { return append([]byte(nil), fileSchema...) }
