package flow

import "encoding/json"

// JSON gives a file as JSON, its maps in their order, as far as it is one at all: for
// forms that show what stands in it. Whether it makes sense, Load tells.
func JSON(src []byte) (json.RawMessage, bool) {
	root, problems := tree(src)
	if len(problems) > 0 || root == nil {
		return nil, false
	}
	return root.json(), true
}
