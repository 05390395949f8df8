package deploy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// object is what is looked at of an object of Kubernetes.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		ScaleTargetRef struct{ Name string } `yaml:"scaleTargetRef"`
		Template       struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Image          string
					ReadinessProbe struct {
						HTTPGet struct{ Path string } `yaml:"httpGet"`
					} `yaml:"readinessProbe"`
					VolumeMounts []struct{ Name, MountPath string } `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name      string
					ConfigMap struct{ Name string }       `yaml:"configMap"`
					Secret    struct{ SecretName string } `yaml:"secret"`
				}
			}
		}
		VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
	}
}

func readObjects(t *testing.T) map[string]object {
	t.Helper()
	all := map[string]object{}
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var list struct{ Resources []string }
	readYAML(t, "kubernetes/kustomization.yaml", &list)
	for _, name := range list.Resources {
		if _, err := os.Stat(filepath.Join("kubernetes", name)); err != nil {
			t.Errorf("kustomization.yaml names %s: %v", name, err)
		}
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for d := yaml.NewDecoder(bytes.NewReader(b)); ; {
			var o object
			err := d.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			all[o.Kind+"/"+o.Metadata.Name] = o
		}
	}
	return all
}

// Each name leads to something that is there, pods have the time to drain that the settings
// give them, and only those with a disk of their own take events in.
func TestKubernetesFilesAgree(t *testing.T) {
	all := readObjects(t)
	settings := all["ConfigMap/forebay"].Data["forebay.yaml"]
	if !strings.Contains(settings, "grace: 10s") || !strings.Contains(settings, "drain: 30s") {
		t.Fatalf("the settings: %s", settings)
	}
	for _, name := range []string{"StatefulSet/forebay-ingest", "Deployment/forebay-worker"} {
		pod := all[name].Spec.Template.Spec
		if pod.Grace < 10+30 {
			t.Errorf("%s: a pod is killed after %d s", name, pod.Grace)
		}
		there := map[string]bool{}
		for _, v := range pod.Volumes {
			there[v.Name] = true
			if v.ConfigMap.Name != "" && all["ConfigMap/"+v.ConfigMap.Name].Kind == "" {
				t.Errorf("%s: no ConfigMap %s", name, v.ConfigMap.Name)
			}
			if v.Secret.SecretName != "" && all["Secret/"+v.Secret.SecretName].Kind == "" {
				t.Errorf("%s: no Secret %s", name, v.Secret.SecretName)
			}
		}
		for _, v := range all[name].Spec.VolumeClaimTemplates {
			there[v.Metadata.Name] = true
		}
		if len(pod.Containers) != 1 || pod.Containers[0].ReadinessProbe.HTTPGet.Path != "/readyz" {
			t.Fatalf("%s: %+v", name, pod.Containers)
		}
		for _, m := range pod.Containers[0].VolumeMounts {
			if !there[m.Name] {
				t.Errorf("%s: no volume %s", name, m.Name)
			}
		}
	}
	if n := len(all["StatefulSet/forebay-ingest"].Spec.VolumeClaimTemplates); n != 1 {
		t.Errorf("pods that take events in have %d disks of their own", n)
	}
	if target := all["ScaledObject/forebay-worker"].Spec.ScaleTargetRef.Name; all["Deployment/"+target].Kind == "" {
		t.Errorf("what is scaled is not there: %q", target)
	}
}
