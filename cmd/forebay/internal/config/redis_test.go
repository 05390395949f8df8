package config

import (
	"strings"
	"testing"
)

func TestRedisAddress(t *testing.T) {
	for name, c := range map[string]struct {
		env     map[string]string
		want    string
		problem string
	}{
		"nothing":      {nil, "", ""},
		"URL":          {map[string]string{"REDIS_URL": "redis://a:b@c:1/2"}, "redis://a:b@c:1/2", ""},
		"host":         {map[string]string{"REDIS_HOST": "cache"}, "redis://cache:6379/0", ""},
		"host, port":   {map[string]string{"REDIS_HOST": "::1", "REDIS_PORT": "7000"}, "redis://[::1]:7000/0", ""},
		"password":     {map[string]string{"REDIS_HOST": "cache", "REDIS_PASSWORD": "p@ss/"}, "redis://:p%40ss%2F@cache:6379/0", ""},
		"URL wins":     {map[string]string{"REDIS_URL": "unix:///run/redis.sock", "REDIS_HOST": "cache"}, "unix:///run/redis.sock", ""},
		"no scheme":    {map[string]string{"REDIS_URL": "secret@host"}, "", "redis.url"},
		"port alone":   {map[string]string{"REDIS_PORT": "7000"}, "", "redis.port"},
		"colon":        {map[string]string{"REDIS_URL": "redis://h", "FOREBAY_REDIS_PREFIX": "a:b"}, "", "redis.prefix"},
		"roles":        {map[string]string{"REDIS_URL": "redis://h", "FOREBAY_SERVER_ROLES": "worker"}, "redis://h", ""},
		"lonely edge":  {map[string]string{"REDIS_URL": "redis://h", "FOREBAY_SERVER_ROLES": "ingest,api"}, "", "server.roles"},
		"edge and SQS": {map[string]string{"REDIS_URL": "redis://h", "FOREBAY_SERVER_ROLES": "ingest", "AWS_SQS_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/1/q"}, "redis://h", ""},
	} {
		s, err := loadEnv(c.env)
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want a problem with %s that shows no secret", name, err, c.problem)
			}
			continue
		}
		if err != nil || s.Redis.Address() != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestRedisSecretsAreMasked(t *testing.T) {
	s, err := loadEnv(map[string]string{"REDIS_URL": "rediss://app:hidden@h/1?password=hidden", "REDIS_PASSWORD": "hidden"})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range s.Effective() {
		if strings.Contains(one.Value, "hidden") {
			t.Errorf("%s shows %q", one.Key, one.Value)
		}
	}
}
