package executor

import (
	"errors"
	"maps"
	"slices"

	"fspda/cuda/driver"
)

// MaxGraphs is how many graphs a cache keeps: agents take turns with a program, each with its own
// vectors.
const MaxGraphs = 256

// GraphCache is the captured graphs of one sequence of launches. The key has everything that the
// launches depend on.
type GraphCache[K comparable] map[K]driver.GraphExec

// Launch launches the graph of a key. If there is none yet, it captures the work that send sends.
// name names the sequence in errors. Where launches block it calls send each time.
func (c GraphCache[K]) Launch(ex *Executor, key K, name string, send func() error) error {
	if ex.API.Blocking {
		return send()
	}
	exec, ok := c[key]
	if !ok {
		if len(c) >= MaxGraphs {
			if err := c.clear(ex); err != nil {
				return err
			}
		}
		var err error
		if exec, err = ex.capture(name, send); err != nil {
			return err
		}
		c[key] = exec
		ex.graphs[exec] = true
	}
	if r := ex.API.GraphLaunch(exec, ex.Stream); r != driver.Success {
		return ex.API.Check(r, "cuGraphLaunch", "launching the graph of %s", name)
	}
	return nil
}

// clear destroys all graphs of the cache, once the GPU has completed them.
func (c GraphCache[K]) clear(ex *Executor) error {
	err := ex.Synchronize()
	for k, exec := range c {
		err = errors.Join(err, ex.destroyGraph(exec))
		delete(c, k)
		delete(ex.graphs, exec)
	}
	return err
}

// Discard gives up the graphs of a cache that nothing refers to. Finalisers may call it.
func (c GraphCache[K]) Discard(ex *Executor) {
	ex.garbage.Lock()
	defer ex.garbage.Unlock()
	ex.garbage.graphs = append(ex.garbage.graphs, slices.Collect(maps.Values(c))...)
}

// capture makes a graph of the work that send sends. It is captured on the stream of the libraries'
// handles.
func (ex *Executor) capture(name string, send func() error) (exec driver.GraphExec, err error) {
	at := ex.Stream
	ex.Stream = ex.home
	defer func() { ex.Stream = at }()
	if err := ex.API.Check(ex.API.StreamBeginCapture(ex.Stream, driver.CaptureThreadLocal), "cuStreamBeginCapture",
		"capturing %s", name); err != nil {
		return 0, err
	}
	sent := send()
	var g driver.Graph
	ended := ex.API.Check(ex.API.StreamEndCapture(ex.Stream, &g), "cuStreamEndCapture", "capturing %s", name)
	if sent != nil && g != 0 {
		ex.API.GraphDestroy(g)
	}
	if err := errors.Join(sent, ended); err != nil {
		return 0, err
	}
	err = ex.API.Check(ex.API.GraphInstantiate(&exec, g, 0), "cuGraphInstantiate", "making a graph of %s", name)
	return exec, errors.Join(err, ex.API.Check(ex.API.GraphDestroy(g), "cuGraphDestroy",
		"destroying the template of the graph of %s", name))
}

func (ex *Executor) destroyGraph(exec driver.GraphExec) error {
	return ex.API.Check(ex.API.GraphExecDestroy(exec), "cuGraphExecDestroy", "destroying a graph")
}
