package link

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"fspda/dist"
)

// SendNumbers sends numbers of an evaluation at iteration t to another agent, in a stream of their
// own. They are kept until they are stable, like the messages of the algorithm.
func (n *Node) SendNumbers(ctx context.Context, to, t int, numbers []float64) error {
	body := n.bodies.get(8 * len(numbers))
	for _, x := range numbers {
		body = binary.LittleEndian.AppendUint64(body, math.Float64bits(x))
	}
	size := len(body)
	if size > n.bodyCodec.limit() {
		return fmt.Errorf("link: %d numbers of an evaluation; at most %d can be sent at once", len(numbers),
			n.bodyCodec.limit()/8)
	}
	out := n.opt.Compression.compress(body)
	memory := newBodyRef(func() { n.bodies.put(out) })
	if err := n.peer(to).send(ctx, evaluations, sentMessage{t: uint64(t), body: segments{out}, rawSize: size,
		memory: memory}, 0); err != nil {
		return fmt.Errorf("link: sending the evaluation of iteration %d to agent %d: %w", t, to, err)
	}
	return nil
}

// ReceiveNumbers waits for the next numbers of an evaluation from another agent. If they are not as
// many, or of another iteration than t, they are refused, and awaited again.
func (n *Node) ReceiveNumbers(ctx context.Context, from, t int, into []float64) error {
	p := n.peer(from)
	for {
		msg, err := p.peek(ctx, evaluations)
		if err != nil {
			return fmt.Errorf("link: awaiting the evaluation of iteration %d from agent %d: %w", t, from, err)
		}
		body, err := decompress(msg)
		if err == nil && (int(msg.t) != t || len(body) != 8*len(into)) {
			err = dist.Invalidf("%d bytes of an evaluation of iteration %d, expected %d of iteration %d", len(body),
				msg.t, 8*len(into), t)
		}
		if err != nil {
			p.refuseMessage(evaluations, fmt.Errorf("link: numbers of agent %d were refused: %w", from, err))
			continue
		}
		for k := range into {
			into[k] = math.Float64frombits(binary.LittleEndian.Uint64(body[8*k:]))
		}
		p.take(evaluations, msg)
		n.bodies.put(msg.body)
		return nil
	}
}
