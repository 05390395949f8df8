package deploy

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// module is a Terraform module as its files say it.
type module struct {
	declared map[string]bool // "var.name", "aws_sqs_queue.dead", "data.aws_iam_policy_document.producer", "local.suffix"
	bodies   []*hclsyntax.Body
}

func readModule(t *testing.T, dir string) module {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.tf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no module in %s: %v", dir, err)
	}
	m := module{declared: map[string]bool{}}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(hclwrite.Format(b), b) {
			t.Errorf("%s is not formatted as terraform fmt does it", name)
		}
		f, problems := hclsyntax.ParseConfig(b, name, hcl.InitialPos)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		body := f.Body.(*hclsyntax.Body)
		m.bodies = append(m.bodies, body)
		for _, block := range body.Blocks {
			m.declare(t, block)
		}
	}
	return m
}

func (m *module) declare(t *testing.T, block *hclsyntax.Block) {
	names := []string{}
	switch block.Type {
	case "variable":
		names = append(names, "var."+block.Labels[0])
	case "resource":
		names = append(names, strings.Join(block.Labels, "."))
	case "data":
		names = append(names, "data."+strings.Join(block.Labels, "."))
	case "locals":
		for name := range block.Body.Attributes {
			names = append(names, "local."+name)
		}
	case "output", "terraform":
		names = append(names, strings.Join(append([]string{block.Type}, block.Labels...), "."))
	default:
		t.Errorf("%s: a block %q", block.DefRange(), block.Type)
	}
	for _, name := range names {
		if m.declared[name] {
			t.Errorf("%s: %s is there twice", block.DefRange(), name)
		}
		m.declared[name] = true
	}
}

// reference is what an expression names, as far as it must be declared; empty: nothing.
func reference(v hcl.Traversal) string {
	var words []string
	for _, step := range v {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			words = append(words, step.Name)
		case hcl.TraverseAttr:
			words = append(words, step.Name)
		}
	}
	switch {
	case slices.Contains([]string{"each", "statement", "string", "number", "bool"}, words[0]): // of for_each and dynamic; types
		return ""
	case words[0] == "data" && len(words) >= 3:
		return strings.Join(words[:3], ".")
	case len(words) >= 2:
		return strings.Join(words[:2], ".")
	}
	return words[0]
}

func TestTerraformNamesOnlyWhatIsThere(t *testing.T) {
	m := readModule(t, "terraform")
	used := map[string]bool{}
	for _, body := range m.bodies {
		_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics {
			e, ok := n.(*hclsyntax.ScopeTraversalExpr)
			if !ok {
				return nil
			}
			name := reference(e.Traversal)
			used[name] = true
			if name != "" && !m.declared[name] {
				t.Errorf("%s: %s is declared nowhere", e.Range(), name)
			}
			return nil
		})
	}
	for name := range m.declared {
		if (strings.HasPrefix(name, "var.") || strings.HasPrefix(name, "local.")) && !used[name] {
			t.Errorf("%s is used nowhere", name)
		}
	}
}

func TestTerraformExplainsItself(t *testing.T) {
	for _, body := range readModule(t, "terraform").bodies {
		for _, block := range body.Blocks {
			if block.Type != "variable" && block.Type != "output" {
				continue
			}
			if block.Body.Attributes["description"] == nil {
				t.Errorf("%s: %s %s has no description", block.DefRange(), block.Type, block.Labels[0])
			}
			if block.Type == "variable" && block.Body.Attributes["type"] == nil {
				t.Errorf("%s: variable %s has no type", block.DefRange(), block.Labels[0])
			}
		}
	}
}

// What the policies allow is what the program asks, and nothing with a wildcard.
func TestTerraformGrantsNoMoreThanIsAsked(t *testing.T) {
	for _, body := range readModule(t, "terraform").bodies {
		for _, block := range body.Blocks {
			if block.Type != "data" || block.Labels[1] == "tls_only" {
				continue
			}
			_ = hclsyntax.VisitAll(block.Body, func(n hclsyntax.Node) hcl.Diagnostics {
				text, ok := n.(*hclsyntax.LiteralValueExpr)
				if ok && text.Val.Type().FriendlyName() == "string" && strings.Contains(text.Val.AsString(), "*") {
					t.Errorf("%s: a wildcard in %s", text.Range(), block.Labels[1])
				}
				return nil
			})
		}
	}
}
