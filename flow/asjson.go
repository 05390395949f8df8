package flow

import (
	"encoding/json"
	"fmt"
)

// JSON gives a file as JSON, its maps in their order, as far as it is one at all: for
// forms that show what stands in it. Whether it makes sense, Load tells.
func JSON(src []byte) (json.RawMessage, bool) {
	root, problems := tree(src)
	if len(problems) > 0 || root == nil {
		return nil, false
	}
	return root.json(), true
}

// Read gives a file as JSON, its maps in their order, and the place of each value by its
// path (do[0].call.with). What no file of ours may have is a problem: one that is too
// large or too deep, anchors, tags and merges, two documents, two keys of one name.
func Read(src []byte) (json.RawMessage, map[string]Place, Problems) {
	root, problems := tree(src)
	if len(problems) > 0 {
		return nil, nil, problems
	}
	places := map[string]Place{}
	root.walk("", places)
	return root.json(), places, nil
}

func (n *node) walk(path string, places map[string]Place) {
	places[path] = Place{n.line, n.column}
	for _, e := range n.entries {
		e.value.walk(join(path, e.key), places)
	}
	for i, item := range n.items {
		item.walk(fmt.Sprintf("%s[%d]", path, i), places)
	}
}

// YAML writes JSON as a file is written.
func YAML(value json.RawMessage) ([]byte, error) {
	root, problems := tree(value)
	if len(problems) > 0 {
		return nil, problems
	}
	return []byte(root.yaml(0, false) + "\n"), nil
}
