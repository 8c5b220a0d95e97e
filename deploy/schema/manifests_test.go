// Package schema checks the Kubernetes manifests against the types of the Kubernetes API: unknown
// fields and fields of another type fail. It is a module of its own, since these types take long to
// compile. make test-long runs it.
package schema

import (
	"bytes"
	"os"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// types holds the types of the API, by apiVersion and kind.
var types = map[[2]string]func() any{
	{"v1", "Service"}:               func() any { return new(core.Service) },
	{"v1", "PersistentVolumeClaim"}: func() any { return new(core.PersistentVolumeClaim) },
	{"batch/v1", "Job"}:             func() any { return new(batch.Job) },
}

func TestManifests(t *testing.T) {
	text, err := os.ReadFile("../kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, manifest := range bytes.Split(text, []byte("\n---\n")) {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(manifest, &head); err != nil {
			t.Fatal(err)
		}
		of := types[[2]string{head.APIVersion, head.Kind}]
		if of == nil {
			t.Errorf("no type is known for %+v: add it here", head)
			continue
		}
		if err := yaml.UnmarshalStrict(manifest, of()); err != nil {
			t.Errorf("%s: %v", head.Kind, err)
		}
	}
}

// The check finds errors.
func TestRefuses(t *testing.T) {
	for _, bad := range []string{"spec: {completion: 4}", "spec: {completions: four}",
		"spec: {template: {spec: {containers: {name: agent}}}}"} {
		if err := yaml.UnmarshalStrict([]byte(bad), new(batch.Job)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
