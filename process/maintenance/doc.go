// Package maintenance suppresses the alerts of AvS about an instance while its cluster or its Kyma is upgraded.
package maintenance
