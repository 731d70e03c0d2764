package service

import (
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/utils/clock"

	delivery "github.com/environment-broker/environment-broker/broker/webhooks"
	"github.com/environment-broker/environment-broker/internal/clients/webhook"
	"github.com/environment-broker/environment-broker/internal/upstream/networks"
)

// jitter is the maximum fraction by which the pauses between attempts are lengthened.
const jitter = 0.1

// connectWebhooks adds the lifecycle.Part that delivers events to webhooks, and registers its metrics.
func (s *Service) connectWebhooks(connected *upstreams, config Config, stores stores) error {
	allowed, err := networks.Parse(config.Webhooks.Networks)
	if err != nil {
		return fmt.Errorf("APP_WEBHOOK_NETWORKS: %w", err)
	}

	metrics := delivery.NewMetrics(stores.webhooks, clock.RealClock{}, s.Log)
	s.Metrics().MustRegister(metrics)

	client := webhook.New(allowed, delivery.Timeout)

	connected.webhooks = client
	connected.parts = append(connected.parts, delivery.New(delivery.Options{
		Store: stores.webhooks, Events: stores.eventLog, Send: client.Send, PublicURL: config.PublicURL, Metrics: metrics,
		Jitter: func(pause time.Duration) time.Duration {
			return pause + time.Duration(rand.Float64()*jitter*float64(pause))
		},
		Clock: clock.RealClock{}, Log: s.Log,
	}).Part())

	return nil
}
