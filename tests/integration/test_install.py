"""What `cmake --install` puts under a prefix: programs that run, settings, the unit, and the client library, as C and C++
programs find it through pkg-config and CMake, shared and static."""
import os
import shutil
import subprocess
import tempfile
import unittest

import harness

BUILD = os.path.dirname(harness.bin_dir())

C_PROGRAM = r"""
#include <kafka/admin.h>
#include <kafka/consumer.h>
#include <kafka/producer.h>
#include <stdio.h>

int main(void)
{
    char err[256] = "";
    kafka_conf_t *conf = kafka_conf_new();
    kafka_producer_t *p = kafka_producer_new(conf, err, sizeof err); /* no bootstrap.servers */
    printf("%s|%s|%s\n", kafka_version(), kafka_err_name(KAFKA_ERR_TIMED_OUT), p ? "made" : err);
    kafka_conf_free(conf);
    return p != NULL;
}
"""
# A name of the library's inside: none of it may be seen outside.
C_CLASH = C_PROGRAM + r"""
int murmur2(void);
int murmur2(void)
{
    return 1;
}
"""


def cache_has(text):
    with open(os.path.join(BUILD, "CMakeCache.txt")) as f:
        return text in f.read()


def check(args, **kw):
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, **kw)
    if p.returncode != 0:
        raise AssertionError("%s: %s" % (" ".join(args), p.stdout.decode("utf-8", "replace")))
    return p.stdout.decode()


@unittest.skipIf(cache_has("ASAN:BOOL=ON") or cache_has("TSAN:BOOL=ON"), "sanitizers cannot be linked to from outside")
class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp(prefix="kafkad-test-")
        cls.prefix = os.path.join(cls.top, "a prefix")
        check(["cmake", "--install", BUILD, "--prefix", cls.prefix])
        # What is installed may be moved.
        moved = os.path.join(cls.top, "moved")
        os.rename(cls.prefix, moved)
        cls.prefix = moved

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.top, ignore_errors=True)

    def path(self, *parts):
        return os.path.join(self.prefix, *parts)

    def libdir(self):
        for folder, _, files in os.walk(self.prefix):
            if "libkafkad-client.so" in files:
                return folder
        self.fail("no libkafkad-client.so")

    def pkg_config(self, *args):
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(self.libdir(), "pkgconfig"))
        return check(["pkg-config", *args, "kafkad-client"], env=env).split()

    def build(self, compiler, source, name, flags, libs):
        ext = ".cc" if "++" in compiler else ".c"
        with open(os.path.join(self.top, name + ext), "w") as f:
            f.write(source)
        out = os.path.join(self.top, name)
        check([compiler, "-Wall", "-Wextra", "-Werror", "-o", out, f.name, *flags, *libs])
        return out

    def expect_runs(self, program, **env):
        out = check([program], env=dict(os.environ, **env))
        version, name, err = out.strip().split("|")
        self.assertRegex(version, r"^\d+\.\d+\.\d+$")
        self.assertEqual(name, "TIMED_OUT")
        self.assertIn("bootstrap.servers", err)

    def test_programs_settings_and_unit(self):
        names = set(os.listdir(self.path("bin")))
        for name in ["kafka-topics", "kafka-console-producer", "kafka-console-consumer", "kafka-get-offsets",
                     "kafka-broker-api-versions", "kafka-producer-perf-test", "kafka-consumer-perf-test",
                     "kafka-server-start", "kafka-server-stop"]:
            self.assertIn(name, names)
            self.assertIn(name + ".sh", names)
            for suffix in ["", ".sh"]:  # kafkad's file, under the command's name
                completion = self.path("share", "bash-completion", "completions", name + suffix)
                with open(completion) as f:
                    self.assertIn("complete ", f.read())
            self.assertTrue(os.path.exists(self.path("share", "man", "man1", name + ".1")), name)
        self.assertTrue(os.path.exists(self.path("share", "man", "man8", "kafkad.8")))
        check([self.path("bin", "kafkad"), "--check-config", self.path("etc", "kafkad", "server.properties")])
        check([self.path("bin", "kafka-topics.sh"), "--help"])
        with open(self.path("lib", "systemd", "system", "kafkad.service")) as f:
            unit = f.read()
        self.assertRegex(unit, r"ExecStart=/.*/a prefix/bin/kafkad .*/a prefix/etc/kafkad/server.properties")
        self.assertRegex(unit, r"(?m)^User=kafkad$")  # the name that keys and passwords can be given to

    def test_c_and_cxx_through_pkg_config(self):
        flags = self.pkg_config("--cflags")
        libs = self.pkg_config("--libs")
        for compiler, name in [("cc", "c"), ("c++", "cxx")]:
            self.expect_runs(self.build(compiler, C_PROGRAM, name, flags, libs), LD_LIBRARY_PATH=self.libdir())

    def test_static_through_pkg_config(self):
        flags = self.pkg_config("--cflags")
        libs = self.pkg_config("--libs", "--static")
        libs = [os.path.join(self.libdir(), "libkafkad-client.a") if x == "-lkafkad-client" else x for x in libs]
        self.expect_runs(self.build("cc", C_CLASH, "static", flags, libs))

    def test_only_the_api_is_visible(self):
        for args in [["nm", "-D", "--defined-only", "libkafkad-client.so"],
                     ["nm", "-g", "--defined-only", "libkafkad-client.a"]]:
            names = [line.split()[2] for line in check(args, cwd=self.libdir()).splitlines() if len(line.split()) == 3]
            self.assertIn("kafka_producer_send", names)
            self.assertEqual([n for n in names if not n.startswith("kafka_")], [])

    def test_cmake_package(self):
        source = os.path.join(self.top, "user")
        os.mkdir(source)
        with open(os.path.join(source, "main.c"), "w") as f:
            f.write(C_PROGRAM)
        with open(os.path.join(source, "CMakeLists.txt"), "w") as f:
            f.write("cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES C)\n"
                    "find_package(KafkadClient 0.1 REQUIRED)\n"
                    "foreach(kind client client_static)\nadd_executable(${kind} main.c)\n"
                    "target_link_libraries(${kind} PRIVATE kafkad::${kind})\nendforeach()\n")
        build = os.path.join(source, "build")
        check(["cmake", "-S", source, "-B", build, "-DCMAKE_PREFIX_PATH=" + self.prefix])
        check(["cmake", "--build", build])
        for kind in ["client", "client_static"]:
            self.expect_runs(os.path.join(build, kind))


if __name__ == "__main__":
    unittest.main()
