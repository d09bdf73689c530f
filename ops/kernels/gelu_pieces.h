/*
 * Q(a) = erfc(a / sqrt 2) / 2 and its part in gelu's slope, Q(a) - a p(a) for p(a) = e^(-a^2/2) /
 * sqrt(2 pi), in pieces for float32: polynomials of degree 6 around 32 centres, 11/64 apart, that
 * a vector looks up in registers. Each costs half the operations of a power of e.
 *
 * A table's first line is the centres, the next ones the coefficients from the constant on. A
 * centre is a number near the middle of its piece for which the function is all but exactly a
 * float: so the constant has no error, and the others count little. The coefficients are
 * least-squares fits to the relative error (to the error around the slope's zero), each rounded
 * before the next is fitted; the error is below 1/6 of an ULP.
 */
#ifndef EDDY_OPS_KERNELS_GELU_PIECES_H
#define EDDY_OPS_KERNELS_GELU_PIECES_H

enum { GELU_PIECES = 32, GELU_DEGREE = 6 };

/* Pieces in 1, and where the last one ends, a bit less. */
#define GELU_PIECES_IN_1 0x1.745d18p2f
#define GELU_PIECES_END  0x1.5ap2f

static const float gelu_pieces[GELU_DEGREE + 2][GELU_PIECES] = {
    {0x0p0f,       0x1.6a9p-3f, 0x1.5e54p-2f, 0x1.0a9ep-1f, 0x1.623cp-1f, 0x1.ba64p-1f,
     0x1.092ep0f,  0x1.33a2p0f, 0x1.5ec4p0f,  0x1.8ce8p0f,  0x1.b6dbp0f,  0x1.e43fp0f,
     0x1.08acp1f,  0x1.1db1p1f, 0x1.34308p1f, 0x1.4a95p1f,  0x1.5f6cp1f,  0x1.75928p1f,
     0x1.8b4cp1f,  0x1.a201p1f, 0x1.b86c8p1f, 0x1.cd5fp1f,  0x1.e4c3p1f,  0x1.fa818p1f,
     0x1.081a4p2f, 0x1.1302p2f, 0x1.1e51p2f,  0x1.29408p2f, 0x1.3405p2f,  0x1.3f148p2f,
     0x1.4a4bcp2f, 0x1.555ep2f},
    {0x1p-1f,         0x1.b80e24p-2f,  0x1.76eb2p-2f,   0x1.348176p-2f,  0x1.f4c26p-3f,
     0x1.8cdd7ap-3f,  0x1.33798ap-3f,  0x1.d5fb64p-4f,  0x1.5d73eep-4f,  0x1.efc9aap-5f,
     0x1.623632p-5f,  0x1.df9c1ep-6f,  0x1.3cbb82p-6f,  0x1.a3b6e4p-7f,  0x1.06ff26p-7f,
     0x1.41409cp-8f,  0x1.8bfbp-9f,    0x1.ccf4fep-10f, 0x1.07e49cp-10f, 0x1.1e4a46p-11f,
     0x1.3012aep-12f, 0x1.47fec6p-13f, 0x1.3f826p-14f,  0x1.3e3b72p-15f, 0x1.34d64ap-16f,
     0x1.2275bp-17f,  0x1.01f73ep-18f, 0x1.c969acp-20f, 0x1.8f80b2p-21f, 0x1.4b9448p-22f,
     0x1.07ed16p-23f, 0x1.9cf108p-25f},
    {-0x1.988454p-2f,  -0x1.922a4cp-2f,  -0x1.814bb4p-2f,  -0x1.64b834p-2f,  -0x1.419048p-2f,
     -0x1.19403ap-2f,  -0x1.ddcb3ap-3f,  -0x1.8ce2eep-3f,  -0x1.3f92bcp-3f,  -0x1.eb3d9ep-4f,
     -0x1.77f2b6p-4f,  -0x1.11156cp-4f,  -0x1.815c8ap-5f,  -0x1.0ebc54p-5f,  -0x1.68282cp-6f,
     -0x1.d18716p-7f,  -0x1.2db2eep-7f,  -0x1.71a0dap-8f,  -0x1.bc0864p-9f,  -0x1.f9745p-10f,
     -0x1.18ef2p-10f,  -0x1.3bb2aep-11f, -0x1.415bf8p-12f, -0x1.4ced4ap-13f, -0x1.4f95e2p-14f,
     -0x1.4774d2p-15f, -0x1.2dc20ep-16f, -0x1.14ee06p-17f, -0x1.f3f0b4p-19f, -0x1.acc824p-20f,
     -0x1.607d78p-21f, -0x1.1c6a2ap-22f},
    {0x1.924a66p-20f, 0x1.1cc91ep-5f,  0x1.07a1f8p-4f,  0x1.73839ap-4f,  0x1.bcf4dep-4f,
     0x1.e606bep-4f,  0x1.eeed3ep-4f,  0x1.dcef48p-4f,  0x1.b5df4ep-4f,  0x1.7cd03ep-4f,
     0x1.423d6ep-4f,  0x1.0247dap-4f,  0x1.8e6a5ap-5f,  0x1.2e22dap-5f,  0x1.b1948ep-6f,
     0x1.2c938ap-6f,  0x1.9e279ep-7f,  0x1.0db174p-7f,  0x1.56d262p-8f,  0x1.9ca8fp-9f,
     0x1.e35212p-10f, 0x1.1c7af6p-10f, 0x1.304356p-11f, 0x1.495ab8p-12f, 0x1.5a34fap-13f,
     0x1.5fc50ap-14f, 0x1.517e46p-15f, 0x1.418deap-16f, 0x1.2cc3acp-17f, 0x1.0b37dap-18f,
     0x1.c6ca0ap-20f, 0x1.7b41dap-21f},
    {0x1.100f64p-4f,   0x1.03b15p-4f,    0x1.c59442p-5f,   0x1.5a99dcp-5f,   0x1.befc02p-6f,
     0x1.7c2d6ep-7f,   -0x1.74606ep-9f,  -0x1.d6018cp-7f,  -0x1.75d2bcp-6f,  -0x1.cbbfdp-6f,
     -0x1.e5ec84p-6f,  -0x1.d55b18p-6f,  -0x1.a4c2c4p-6f,  -0x1.67540ap-6f,  -0x1.1ff646p-6f,
     -0x1.b7ef62p-7f,  -0x1.48bbap-7f,   -0x1.cf221ap-8f,  -0x1.3be7fcp-8f,  -0x1.971524p-9f,
     -0x1.fb8274p-10f, -0x1.3b7d3cp-10f, -0x1.6551e6p-11f, -0x1.96ae5ap-12f, -0x1.c0406cp-13f,
     -0x1.dc8fd6p-14f, -0x1.de2206p-15f, -0x1.dabefep-16f, -0x1.cdab0cp-17f, -0x1.aa35fep-18f,
     -0x1.787da2p-19f, -0x1.454b32p-20f},
    {0x1.7ffb96p-10f,  -0x1.1a861ep-7f, -0x1.fa992p-7f,  -0x1.5254bap-6f, -0x1.76005cp-6f,
     -0x1.6cff5cp-6f,  -0x1.3e0cd4p-6f, -0x1.ee8aacp-7f, -0x1.481dbep-7f, -0x1.2e9d1ep-8f,
     -0x1.a0251cp-12f, 0x1.8e38a8p-9f,  0x1.52c2a8p-8f,  0x1.8f2982p-8f,  0x1.945b86p-8f,
     0x1.6fbfcep-8f,   0x1.392c54p-8f,  0x1.effdcap-9f,  0x1.758a2ep-9f,  0x1.07962ep-9f,
     0x1.63ff1ep-10f,  0x1.d9bd8ap-11f, 0x1.1f9808p-11f, 0x1.5b6b0ap-12f, 0x1.94bd2cp-13f,
     0x1.c55648p-14f,  0x1.de8076p-15f, 0x1.f1a81p-16f,  0x1.f95d62p-17f, 0x1.e6b79ep-18f,
     0x1.bfd90ap-19f,  0x1.922606p-20f},
    {-0x1.8f44aep-6f,  -0x1.212654p-7f,  -0x1.cb3688p-8f,  -0x1.d289dp-9f,   -0x1.42aa02p-11f,
     0x1.05ecc2p-9f,   0x1.33415ap-8f,   0x1.7ff51cp-8f,   0x1.86f0e8p-8f,   0x1.78613ap-8f,
     0x1.30b97ep-8f,   0x1.9b134ep-9f,   0x1.c09e0cp-10f,  0x1.333ecp-11f,   -0x1.32dbdcp-12f,
     -0x1.d499dap-11f, -0x1.26fc6ap-10f, -0x1.2d67b2p-10f, -0x1.0f0e64p-10f, -0x1.bb7eacp-11f,
     -0x1.5303f2p-11f, -0x1.eee142p-12f, -0x1.491a1ep-12f, -0x1.acbc24p-13f, -0x1.0b65f2p-13f,
     -0x1.3ec22cp-14f, -0x1.653d4ap-15f, -0x1.8841d4p-16f, -0x1.a30dccp-17f, -0x1.a74798p-18f,
     -0x1.97d976p-19f, -0x1.7e486ap-20f},
    {0x1.b7a41p-5f,    0x1.fc98f6p-9f,   0x1.00d1c6p-9f,   0x1.9f235p-8f,    0x1.020118p-8f,
     0x1.162b5cp-9f,   0x1.839f8p-9f,    0x1.3b5374p-12f,  0x1.73ab3ap-10f,  -0x1.c0a452p-11f,
     -0x1.d5c526p-10f, -0x1.7a1936p-10f, -0x1.42e6eap-10f, -0x1.12c0b6p-10f, -0x1.a94e74p-11f,
     -0x1.b68712p-12f, -0x1.9cbd92p-15f, 0x1.7bff84p-14f,  0x1.1fd8bap-13f,  0x1.7a41f6p-13f,
     0x1.9391acp-13f,  0x1.5eabe4p-13f,  0x1.07eb5ep-13f,  0x1.7eadd6p-14f,  0x1.039182p-14f,
     0x1.4b8e92p-15f,  0x1.970f54p-16f,  0x1.dafc6p-17f,   0x1.0b6b96p-17f,  0x1.1cb17p-18f,
     0x1.248202p-19f,  0x1.209d1ap-20f},
};

static const float gelu_slope_pieces[GELU_DEGREE + 2][GELU_PIECES] = {
    {0x0p0f,       0x1.5f98p-3f, 0x1.5ddcp-2f, 0x1.075ap-1f, 0x1.60b8p-1f, 0x1.b7f6p-1f,
     0x1.06bep0f,  0x1.327ap0f,  0x1.611p0f,   0x1.8b95p0f,  0x1.b6bep0f,  0x1.e3dp0f,
     0x1.07478p1f, 0x1.1e248p1f, 0x1.348ep1f,  0x1.4a83p1f,  0x1.607f8p1f, 0x1.754p1f,
     0x1.8cb48p1f, 0x1.a299p1f,  0x1.b7fa8p1f, 0x1.ce918p1f, 0x1.e3db8p1f, 0x1.fa27p1f,
     0x1.07a84p2f, 0x1.12ccp2f,  0x1.1e0f4p2f, 0x1.28dp2f,   0x1.33f8p2f,  0x1.3f314p2f,
     0x1.4a478p2f, 0x1.55504p2f},
    {0x1p-1f,          0x1.751a72p-2f,   0x1.e6de5ap-3f,   0x1.fac8fcp-4f,   0x1.d5a592p-6f,
     -0x1.5730bep-5f,  -0x1.6e5678p-4f,  -0x1.e1de94p-4f,  -0x1.0775ccp-3f,  -0x1.015f14p-3f,
     -0x1.d387bep-4f,  -0x1.8d6374p-4f,  -0x1.44023cp-4f,  -0x1.f08084p-5f,  -0x1.6de21cp-5f,
     -0x1.04b7eep-5f,  -0x1.65af7cp-6f,  -0x1.e4cea4p-7f,  -0x1.2cbe8ap-7f,  -0x1.73d30cp-8f,
     -0x1.c22486p-9f,  -0x1.fff42ap-10f, -0x1.2360dep-10f, -0x1.389e86p-11f, -0x1.4fc9aap-12f,
     -0x1.521606p-13f, -0x1.46de24p-14f, -0x1.3cb2e2p-15f, -0x1.2154c2p-16f, -0x1.fd6e34p-18f,
     -0x1.b6db76p-19f, -0x1.6fef34p-20f},
    {-0x1.988454p-1f, -0x1.8c9be4p-1f, -0x1.6add4ep-1f, -0x1.368e2ap-1f, -0x1.eb8534p-2f,
     -0x1.644818p-2f, -0x1.c8c1fep-3f, -0x1.c45578p-4f, -0x1.eeaaa4p-7f, 0x1.800b0ap-5f,
     0x1.609e96p-4f,  0x1.ae94a6p-4f,  0x1.b79168p-4f,  0x1.929224p-4f,  0x1.54c7eep-4f,
     0x1.0ffbcep-4f,  0x1.9b8a5ap-5f,  0x1.2eaef6p-5f,  0x1.98014ap-6f,  0x1.0e8b7ap-6f,
     0x1.5cd41cp-7f,  0x1.a5f39p-8f,   0x1.fb0a0ep-9f,  0x1.1eddd8p-9f,  0x1.4326ecp-10f,
     0x1.552c3ep-11f, 0x1.593406p-12f, 0x1.5c958p-13f,  0x1.4bc76ap-14f, 0x1.2fd3f6p-15f,
     0x1.0fb12ap-16f, 0x1.d81fbep-18f},
    {0x1.900504p-19f,  0x1.126414p-3f,   0x1.ff45e8p-3f,   0x1.57d352p-2f,   0x1.8748e2p-2f,
     0x1.8bbeaap-2f,   0x1.6ccdf4p-2f,   0x1.328d48p-2f,   0x1.c8a802p-3f,   0x1.3469f8p-3f,
     0x1.56a2f2p-4f,   0x1.bb83bcp-6f,   -0x1.760a7p-7f,   -0x1.2b766ep-5f,  -0x1.865c56p-5f,
     -0x1.915b26p-5f,  -0x1.6bb44p-5f,   -0x1.319768p-5f,  -0x1.d1fdccp-6f,  -0x1.549f96p-6f,
     -0x1.dd5be4p-7f,  -0x1.3846a4p-7f,  -0x1.913048p-8f,  -0x1.e3fed6p-9f,  -0x1.205b88p-9f,
     -0x1.41a8dcp-10f, -0x1.56d334p-11f, -0x1.6ab8dcp-12f, -0x1.6965dep-13f, -0x1.59b41ap-14f,
     -0x1.421042p-15f, -0x1.22ecc4p-16f},
    {0x1.103426p-2f,  0x1.fd2d3p-3f,   0x1.9a944cp-3f,  0x1.08a32ep-3f,  0x1.84058ep-5f,
     -0x1.d57acp-6f,  -0x1.6c1f5p-4f,  -0x1.0897fap-3f, -0x1.2bb14ep-3f, -0x1.216586p-3f,
     -0x1.f17476p-4f, -0x1.7876acp-4f, -0x1.facfbp-5f,  -0x1.0cf766p-5f, -0x1.5aea58p-7f,
     0x1.14d49ep-8f,  0x1.9e1c54p-7f,  0x1.045a26p-6f,  0x1.038556p-6f,  0x1.c3599ep-7f,
     0x1.68afbep-7f,  0x1.08526ap-7f,  0x1.73e232p-8f,  0x1.e78342p-9f,  0x1.379818p-9f,
     0x1.739ddp-10f,  0x1.a5457ap-11f, 0x1.d69a9p-12f,  0x1.ee1ecap-13f, 0x1.f08b1ep-14f,
     0x1.e43ec4p-15f, 0x1.c8a876p-16f},
    {0x1.7b8d3cp-9f,   -0x1.978f2cp-5f,  -0x1.6ed4e6p-4f,  -0x1.d19f88p-4f,  -0x1.e1224cp-4f,
     -0x1.a548d8p-4f,  -0x1.367094p-4f,  -0x1.557798p-5f,  -0x1.93d146p-8f,  0x1.472b42p-6f,
     0x1.3139a6p-5f,   0x1.701b52p-5f,   0x1.673c72p-5f,   0x1.2c2ea8p-5f,   0x1.b4a6bep-6f,
     0x1.1101bp-6f,    0x1.0b7e5p-7f,    0x1.24fafp-9f,    -0x1.fe8c56p-10f, -0x1.f3cbfp-9f,
     -0x1.194bfap-8f,  -0x1.01f182p-8f,  -0x1.a676b8p-9f,  -0x1.39af7ep-9f,  -0x1.ba36aep-10f,
     -0x1.1ff6fap-10f, -0x1.60e566p-11f, -0x1.a541f2p-12f, -0x1.d6cfcep-13f, -0x1.f51ebp-14f,
     -0x1.0180d8p-14f, -0x1.fddf1cp-16f},
    {-0x1.69be04p-4f,  -0x1.c2d756p-5f, -0x1.33458cp-5f, -0x1.201a56p-6f, 0x1.c1bc02p-8f,
     0x1.a16c72p-6f,   0x1.31b9f2p-5f,  0x1.4e02aap-5f,  0x1.26440ap-5f,  0x1.b0dbep-6f,
     0x1.d983f8p-7f,   0x1.a801e4p-9f,  -0x1.5bd6ap-8f,  -0x1.50329ep-7f, -0x1.87ac0ep-7f,
     -0x1.62ed36p-7f,  -0x1.1a3c5ep-7f, -0x1.84dde4p-8f, -0x1.a3ffep-9f,  -0x1.54aea2p-10f,
     -0x1.244ed2p-20f, 0x1.7460b6p-11f, 0x1.ed24bep-11f, 0x1.e351b4p-11f, 0x1.9448dap-11f,
     0x1.2ef5f4p-11f,  0x1.9e8fb4p-12f, 0x1.0eb14ap-12f, 0x1.47a57p-13f,  0x1.762fe2p-14f,
     0x1.99e84p-15f,   0x1.ad9214p-16f},
    {0x1.b68f4cp-4f,   0x1.f711d6p-7f,   0x1.8cb464p-7f,   0x1.1e5d52p-5f,   0x1.5991ep-6f,
     0x1.2a0284p-7f,   0x1.f236a6p-8f,   -0x1.a9f22ap-11f, -0x1.db0edep-8f,  -0x1.88fe1ep-7f,
     -0x1.4ef00cp-7f,  -0x1.41bb84p-7f,  -0x1.515518p-8f,  -0x1.9a63acp-9f,  -0x1.2ab1dp-12f,
     0x1.1344d2p-9f,   0x1.5a9154p-9f,   0x1.1ddaep-9f,    0x1.331576p-9f,   0x1.8bc2a4p-10f,
     0x1.ee4d3cp-11f,  0x1.cbcbdep-12f,  0x1.ecb4c8p-14f,  -0x1.af9d0ap-14f, -0x1.55516ep-13f,
     -0x1.8a612p-13f,  -0x1.434058p-13f, -0x1.ef87bep-14f, -0x1.4de986p-14f, -0x1.a14858p-15f,
     -0x1.f2bc2cp-16f, -0x1.178c88p-16f},
};

#endif
