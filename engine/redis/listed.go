package redis

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

// listed are connections that do nothing but have a name: BullMQ's getWorkers, and with it
// bull-board, lists who works a queue by the names of connections, and the one reader of
// this engine cannot have those of all its queues. There is one for a queue from its first
// receive on, for so many queues as Config.Listed says.
type listed struct {
	e *Engine

	mu    sync.Mutex // guards conns
	conns map[string]goredis.UniversalClient
}

// works says that a queue is worked here.
func (l *listed) works(queue string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns[queue] != nil || len(l.conns) >= l.e.cfg.Listed {
		return
	}
	c, err := connectAs(l.e.cfg, 1, workerName(&l.e.cfg, queue))
	if err != nil {
		return // the address was read before
	}
	if l.conns == nil {
		l.conns = make(map[string]goredis.UniversalClient)
	}
	l.conns[queue] = c
	l.e.running.Go(func() { l.ping(c) })
}

// again makes sure of all of them: a server may have ended them.
func (l *listed) again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		l.e.running.Go(func() { l.ping(c) })
	}
}

func (l *listed) ping(c goredis.UniversalClient) {
	ctx, cancel := context.WithTimeout(context.Background(), l.e.cfg.Timeout)
	defer cancel()
	_ = c.Ping(ctx).Err() // else at the next time
}

func (l *listed) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
}

// oursNamed begins the names by which workers of ours are told from those of Node.
const oursNamed = "w:forebay"

// workerName names a connection as BullMQ names that of a worker of a queue.
func workerName(cfg *Config, queue string) string {
	name := cfg.Prefix + ":" + base64.StdEncoding.EncodeToString([]byte(queue)) + ":" + oursNamed
	if cfg.Name != "forebay" {
		name += "-" + strings.Join(strings.Fields(cfg.Name), "-") // a name of a connection has no spaces
	}
	return name
}
