package cudnn

import (
	"errors"
	"fmt"
	"unsafe"
)

// nodes creates descriptors of the graph API that are destroyed together. After an error, all
// further calls do nothing and err holds the error.
type nodes struct {
	api  *API
	what fmt.Stringer // names the computation that they describe, in errors
	all  []Node
	err  error
}

// check stores the first error.
func (n *nodes) check(s Status, doing string) bool {
	if s != 0 && n.err == nil {
		n.err = n.api.check(s, "%s for %v", doing, n.what)
	}
	return n.err == nil
}

func (n *nodes) create(of DescriptorType) Node {
	var d Node
	if n.err == nil && n.check(n.api.Backend.Create(of, &d), fmt.Sprintf("creating a descriptor of type %d", of)) {
		n.all = append(n.all, d)
	}
	return d
}

// set sets the values of an attribute; there must be at least one.
func set[T any](n *nodes, d Node, name Attribute, of AttributeType, values ...T) {
	if n.err == nil {
		n.check(n.api.Backend.Set(d, name, of, int64(len(values)), unsafe.Pointer(&values[0])),
			fmt.Sprintf("setting attribute %d", name))
	}
}

// get reads the values of an attribute into dst and returns those that were read.
func get[T any](n *nodes, d Node, name Attribute, of AttributeType, dst []T) []T {
	if n.err != nil || len(dst) == 0 {
		return nil
	}
	var got int64
	if !n.check(n.api.Backend.Get(d, name, of, int64(len(dst)), &got, unsafe.Pointer(&dst[0])),
		fmt.Sprintf("reading attribute %d", name)) {
		return nil
	}
	return dst[:min(max(got, 0), int64(len(dst)))]
}

func getOne[T any](n *nodes, d Node, name Attribute, of AttributeType) (v T) {
	if got := get(n, d, name, of, make([]T, 1)); len(got) == 1 {
		return got[0]
	}
	if n.err == nil {
		n.err = fmt.Errorf("cudnn: reading attribute %d for %v: got no value, want one", name, n.what)
	}
	return v
}

// getNodes reads an attribute that holds up to most descriptors of a kind. The library fills in
// descriptors that the caller creates.
func (n *nodes) getNodes(d Node, name Attribute, of DescriptorType, most int) []Node {
	all := make([]Node, 0, most)
	for range most {
		all = append(all, n.create(of))
	}
	return get(n, d, name, NodeValue, all)
}

func (n *nodes) finalize(d Node) Node {
	if n.err == nil {
		n.check(n.api.Backend.Finalize(d), "finalizing a descriptor")
	}
	return d
}

// close destroys the descriptors, last created first.
func (n *nodes) close() error {
	var err error
	for i := len(n.all) - 1; i >= 0; i-- {
		err = errors.Join(err, n.api.check(n.api.Backend.Destroy(n.all[i]), "destroying a descriptor"))
	}
	n.all = nil
	return err
}
