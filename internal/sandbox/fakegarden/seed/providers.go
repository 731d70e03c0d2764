package seed

// abc are the letters of the zones of most regions.
const abc = "abc"

// Providers are the types of the providers that the garden has credentials for, which are also the names of the CredentialsBindings.
func Providers() []string {
	offers := offers()
	providers := make([]string, len(offers))
	for i, offer := range offers {
		providers[i] = offer.provider
	}
	return providers
}

func offers() []offer {
	return []offer{aws(), azure(), gcp(), openStack()}
}

func aws() offer {
	zones := map[string]string{
		"ap-northeast-1": "acd",
		"ap-northeast-2": abc,
		"ap-south-1":     abc,
		"ap-southeast-1": abc,
		"ap-southeast-2": abc,
		"ca-central-1":   "abd",
		"eu-central-1":   abc,
		"eu-west-1":      abc,
		"eu-west-2":      abc,
		"sa-east-1":      abc,
		"us-east-1":      "abcdf",
		"us-west-1":      "ab",
	}
	regions := make(map[string][]string, len(zones))
	for region, letters := range zones {
		regions[region] = lettered(region, "", letters)
	}
	return offer{
		profile:  "aws",
		provider: "aws",
		machines: []machine{
			{"m5.xlarge", 4, 16},
			{"m5.2xlarge", 8, 32},
			{"m5.4xlarge", 16, 64},
			{"m5.8xlarge", 32, 128},
			{"m5.12xlarge", 48, 192},
			{"m6i.large", 2, 8},
			{"m6i.xlarge", 4, 16},
			{"m6i.2xlarge", 8, 32},
			{"m6i.4xlarge", 16, 64},
			{"m6i.8xlarge", 32, 128},
			{"m6i.12xlarge", 48, 192},
		},
		volumes:   []string{"gp2", "gp3", "io1"},
		regions:   regions,
		euRegions: []string{"eu-central-1", "eu-west-1"},
	}
}

func azure() offer {
	regions := map[string][]string{}
	for _, region := range []string{
		"centralus", "eastus", "japaneast", "northeurope", "southeastasia", "switzerlandnorth", "uksouth", "westeurope", "westus2",
	} {
		regions[region] = []string{"1", "2", "3"}
	}
	return offer{
		profile:  "az",
		provider: "azure",
		machines: []machine{
			{"Standard_D2s_v5", 2, 8},
			{"Standard_D4s_v5", 4, 16},
			{"Standard_D8s_v5", 8, 32},
			{"Standard_D16s_v5", 16, 64},
			{"Standard_D32s_v5", 32, 128},
			{"Standard_D48s_v5", 48, 192},
			{"Standard_D64s_v5", 64, 256},
			{"Standard_D4_v3", 4, 16},
			{"Standard_D8_v3", 8, 32},
			{"Standard_D16_v3", 16, 64},
			{"Standard_D32_v3", 32, 128},
			{"Standard_D48_v3", 48, 192},
			{"Standard_D64_v3", 64, 256},
		},
		volumes:   []string{"Standard_LRS", "StandardSSD_LRS", "Premium_LRS"},
		regions:   regions,
		euRegions: []string{"northeurope", "switzerlandnorth", "westeurope"},
	}
}

func gcp() offer {
	zones := map[string]string{
		"asia-south1":  abc,
		"europe-west3": abc,
		"me-central2":  abc,
		"us-central1":  "abcf",
	}
	regions := make(map[string][]string, len(zones))
	for region, letters := range zones {
		regions[region] = lettered(region, "-", letters)
	}
	return offer{
		profile:  "gcp",
		provider: "gcp",
		machines: []machine{
			{"n2-standard-2", 2, 8},
			{"n2-standard-4", 4, 16},
			{"n2-standard-8", 8, 32},
			{"n2-standard-16", 16, 64},
			{"n2-standard-32", 32, 128},
			{"n2-standard-48", 48, 192},
		},
		volumes:   []string{"pd-standard", "pd-balanced", "pd-ssd"},
		regions:   regions,
		euRegions: []string{"europe-west3"},
	}
}

func openStack() offer {
	zones := map[string]string{
		"ap-sa-1": "a",
		"eu-de-1": "abd",
		"eu-de-2": "abd",
	}
	regions := make(map[string][]string, len(zones))
	for region, letters := range zones {
		regions[region] = lettered(region, "", letters)
	}
	return offer{
		profile:  "converged-cloud-cp",
		provider: "openstack",
		machines: []machine{
			{"g_c2_m8", 2, 8},
			{"g_c4_m16", 4, 16},
			{"g_c6_m24", 6, 24},
			{"g_c8_m32", 8, 32},
			{"g_c12_m48", 12, 48},
			{"g_c16_m64", 16, 64},
			{"g_c32_m128", 32, 128},
			{"g_c64_m256", 64, 256},
		},
		regions: regions,
	}
}
