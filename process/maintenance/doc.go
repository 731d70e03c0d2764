// Package maintenance suppresses AvS alerts about an instance while its cluster or its Kyma is being upgraded.
package maintenance
