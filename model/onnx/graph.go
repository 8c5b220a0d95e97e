package onnx

import (
	"fmt"
	"slices"

	"fspda/device"
	"fspda/model"
)

// Names of the input, the output and the free axes.
const (
	inputName  = "input"
	logitsName = "logits"
	batchName  = "batch"
	heightName = "height"
	widthName  = "width"
)

// node is one operator.
type node struct {
	operator   string
	name       string // unique in the graph, also the name of its output
	in         []string
	attributes []attribute
}

// attribute is an operator attribute: a float32, an int, []int64 or []float32.
type attribute struct {
	name  string
	value any
}

// graph is a network as operators, in a valid execution order.
type graph struct {
	nodes  []node
	values map[int]string // the names of the values of the Forward
	used   map[string]int // number of uses of a name
	output string         // output of the last node
	pooled map[int]bool   // the values behind an average over all pixels
	fixed  bool           // a dense layer reads pixels, so that height and width are not free
	tokens bool           // examples are windows of tokens
	mask   string         // the name of the mask of attention, once it is there
}

func translate(net *model.Network) (*graph, error) {
	f, err := net.Forward()
	if err != nil {
		return nil, err
	}
	g := &graph{values: map[int]string{}, pooled: map[int]bool{}, used: map[string]int{inputName: 1, logitsName: 1},
		tokens: net.Tokens()}
	for _, o := range f.Operations {
		write, ok := operators[o.Kernel]
		if other, is := language[o.Kernel]; is {
			write, ok = other, true
		}
		if !ok {
			return nil, fmt.Errorf("onnx: %s: layer %s is the kernel %s, for which no ONNX operator is known",
				net.Name(), o.Layer, o.Kernel)
		}
		write(g, o)
		behind := slices.ContainsFunc(o.In, func(in model.Operand) bool { return g.pooled[in.Value] })
		g.pooled[o.Out[0].Value] = behind || o.Kernel == device.AvgPool
		g.fixed = g.fixed || o.Kernel == device.Linear && !behind
		g.values[o.Out[0].Value] = g.output
	}
	if err := g.end(g.values[f.Logits]); err != nil {
		return nil, fmt.Errorf("onnx: %s: %w", net.Name(), err)
	}
	return g, nil
}

// add appends an operator; its output becomes the output of the graph. It returns the name of that.
func (g *graph) add(layer, operator string, in []string, attributes ...attribute) string {
	name := layer + "/" + operator
	if g.used[name]++; g.used[name] > 1 {
		name = fmt.Sprintf("%s_%d", name, g.used[name])
	}
	g.nodes = append(g.nodes, node{operator, name, in, attributes})
	g.output = name
	return name
}

func (g *graph) inputs(o model.Operation) []string {
	var names []string
	for _, in := range o.In {
		switch in.Space {
		case device.Input:
			names = append(names, inputName)
		case device.Params, device.Buffers:
			names = append(names, in.Tensor)
		default:
			names = append(names, g.values[in.Value])
		}
	}
	return names
}

// end makes the logits the output of the graph.
func (g *graph) end(logits string) error {
	if len(g.nodes) == 0 || g.output != logits || logits == "" {
		return fmt.Errorf("the logits are not the last computed value")
	}
	return nil
}

// message encodes the graph of a network without its initializers.
func (g *graph) message(net *model.Network) message {
	var m message
	for i, n := range g.nodes {
		m.message(graphNode, n.message(i == len(g.nodes)-1))
	}
	m.text(graphName, net.Name())
	shape, kind, logits := []any{net.Inputs()}, int64(elementFloat), []any{net.Classes()}
	if g.tokens {
		kind, logits = elementInt64, []any{net.Inputs(), net.Classes()}
	}
	if image := net.Image(); image != nil {
		shape = []any{image[2], heightName, widthName}
		if g.fixed {
			shape = []any{image[2], image[0], image[1]}
		}
	}
	m.message(graphInput, value(inputName, kind, shape))
	m.message(graphOutput, value(logitsName, elementFloat, logits))
	return m
}

// message encodes an operator. The output of the last one is the logits.
func (n node) message(last bool) message {
	var m message
	for _, in := range n.in {
		m.text(nodeInput, in)
	}
	if last {
		m.text(nodeOutput, logitsName)
	} else {
		m.text(nodeOutput, n.name)
	}
	m.text(nodeName, n.name)
	m.text(nodeOperator, n.operator)
	for _, a := range n.attributes {
		m.message(nodeAttribute, a.message())
	}
	return m
}

func (a attribute) message() message {
	var m message
	m.text(attributeName, a.name)
	switch v := a.value.(type) {
	case float32:
		m.float(attributeFloat, v)
		m.int(attributeIsType, isFloat)
	case int:
		m.int(attributeInt, int64(v))
		m.int(attributeIsType, isInt)
	case []int64:
		m.ints(attributeInts, v)
		m.int(attributeIsType, isInts)
	case []float32:
		m.floats(attributeFloats, v)
		m.int(attributeIsType, isFloats)
	default:
		panic(fmt.Sprintf("onnx: attribute %s of type %T", a.name, a.value))
	}
	return m
}

// value describes an input or output of the network: its type of element, the batch axis, and a
// shape of lengths and names of free axes.
func value(name string, element int64, shape []any) message {
	var dims message
	for _, length := range append([]any{batchName}, shape...) {
		var axis message
		switch l := length.(type) {
		case string:
			axis.text(dimensionName, l)
		case int:
			axis.int(dimensionLength, int64(l))
		}
		dims.message(shapeDim, axis)
	}
	var tensor, kind, m message
	tensor.int(typeElement, element)
	tensor.message(typeShape, dims)
	kind.message(typeTensor, tensor)
	m.text(valueName, name)
	m.message(valueType, kind)
	return m
}

// square returns equal height and width; pads returns equal padding on all four sides.
func square(n int) []int64 { return []int64{int64(n), int64(n)} }
func pads(n int) []int64   { return slices.Repeat([]int64{int64(n)}, 4) }
