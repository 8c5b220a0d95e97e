package benchcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"fspda/bench/measure/bare"
	"fspda/cli/command"
	"fspda/cpu"
	"fspda/dist"
	"fspda/train"
)

// The values of --end. With --end this program is the other end of an exchange: it prints a line
// when it is ready and exits when its input ends.
const (
	endAgents = "agents"
	endGRPC   = "grpc"
)

// serve runs the other end.
func (f exchangeFlags) serve(ctx context.Context, stdout io.Writer) error {
	if len(f.bytes) != 1 {
		return command.UsageErrorf("--end: name one size with --bytes")
	}
	switch f.end {
	case endGRPC:
		address, stop, err := bare.ServeGRPC(f.bytes[0])
		if err != nil {
			return err
		}
		defer stop()
		fmt.Fprintln(stdout, address)
		<-ctx.Done()
		return nil
	case endAgents:
		return f.serveAgent(ctx, stdout)
	}
	return &train.ConfigError{Key: "end", Got: f.end, Want: "expected agents or grpc"}
}

// serveAgent runs the second of two agents.
func (f exchangeFlags) serveAgent(ctx context.Context, stdout io.Writer) error {
	n, pool := f.bytes[0]/4, dist.NewPool(cpu.New())
	node, address, err := openAgent(1, n, pool, agentOptions{join: []string{f.join}, listen: anyPort})
	if err != nil {
		return err
	}
	defer node.Close()
	if err := node.Ready(ctx); err != nil {
		return err
	}
	fmt.Fprintln(stdout, address)
	for t := 1; ; t++ {
		if err := exchange(ctx, node, pool, 1, n, t); errors.Is(err, context.Canceled) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// startPeer starts the other end and returns the line that it prints.
func startPeer(size int, args ...string) (line string, end func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(program, append([]string{"bench", "exchange", "--bytes", strconv.Itoa(size)}, args...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	printed, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	cmd.Stderr = os.Stderr
	command.SetProcessGroup(cmd)
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("the other end cannot be started: %w", err)
	}
	end = func() {
		stdin.Close()
		_ = cmd.Wait() // it has printed its errors
	}
	if line, err = bufio.NewReader(printed).ReadString('\n'); err != nil {
		end()
		return "", nil, fmt.Errorf("the other end of the exchange ended before it was ready: %w", err)
	}
	return strings.TrimSpace(line), end, nil
}

// openRemotePair is openPair with the second agent in another process.
func openRemotePair(ctx context.Context, size int) (exchangeOnce func() error, end func(), err error) {
	n, t, pool := size/4, 0, dist.NewPool(cpu.New())
	node, address, err := openAgent(0, n, pool, agentOptions{listen: anyPort})
	if err != nil {
		return nil, nil, err
	}
	_, leave, err := startPeer(size, "--end", endAgents, "--join", address)
	if err != nil {
		node.Close()
		return nil, nil, err
	}
	end = func() { leave(); node.Close() }
	if err := node.Ready(ctx); err != nil {
		end()
		return nil, nil, err
	}
	return func() error { t++; return exchange(ctx, node, pool, 0, n, t) }, end, nil
}

// startGRPC starts the other end of a plain gRPC stream.
func startGRPC(_ context.Context, size int) (address string, end func(), err error) {
	return startPeer(size, "--end", endGRPC)
}
