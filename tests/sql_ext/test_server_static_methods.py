"""What SQL's ``java_method`` reaches of ours: public static methods that take texts and numbers. No Spark."""

import re
import subprocess
import zipfile
from pathlib import Path

import pyspark

from sql_ext import configuration

SIMPLE = (
    r"(?:java\.lang\.(?:String|Boolean|Byte|Short|Integer|Long|Float|Double)|boolean|byte|short|int|long|float|double)"
)
HARMLESS = {
    "io.usespark.BlockPruning.parse(java.lang.String)",
    "io.usespark.Bridge.declarations()",
    "io.usespark.Bridge.handler()",
    "io.usespark.Bridge.instance()",
    "io.usespark.Bridge.listening()",
    "io.usespark.CatalogChanges.dropped(java.lang.String)",  # makes the service look sooner
    "io.usespark.Declarations.empty()",
    "io.usespark.Declarations.parse(java.lang.String)",
    "io.usespark.FileCount.apply(long, long)",
    "io.usespark.IndexedTables.isDelta(java.lang.String)",
    "io.usespark.IndexedTables.isQbeast(java.lang.String)",
    "io.usespark.InheritedProperties.forget()",  # has databases looked up again
    "io.usespark.JoinOutcome.Tag()",
    "io.usespark.JoinedScans.NotExecuted()",
    "io.usespark.KeyLimits.apply(boolean, int, long, boolean, int, int, long, int)",
    "io.usespark.NamedFormat.made()",  # these two forget what the calling thread named
    "io.usespark.NamedFormat.taken()",
    "io.usespark.Python.attached()",
    "io.usespark.SampleReason.Tag()",
    "io.usespark.SampleReason.apply(java.lang.String, java.lang.String)",
    "io.usespark.SettingDeclaration.apply(java.lang.String, java.lang.String, java.lang.String)",
    "io.usespark.TokenAuthentication.secret()",  # an object, whose text says nothing
    "io.usespark.UnclosedClassLoader.install()",
    "io.usespark.UseCatalog.refused(java.lang.String)",  # makes an exception
    "io.usespark.UseException.notAttached()",
    "io.usespark.UseException.notSupported(java.lang.String)",
    "io.usespark.UseException.readOnly(java.lang.String, java.lang.String)",
    "io.usespark.UseException.timeTravel()",
    "org.apache.spark.sql.delta.usespark.FilePositions.hash(java.lang.String)",
    "org.apache.spark.sql.delta.usespark.IndexedWrite.conf()",
    "org.apache.spark.sql.delta.usespark.IndexedWrite.logConsole(java.lang.String)",
    "org.apache.spark.sql.delta.usespark.WriterInternals.available()",
    "org.apache.spark.sql.hive.thriftserver.usespark.JdbcService.messageIn(java.lang.String)",
    "org.apache.spark.sql.usespark.CallbackThreads.forgetInterrupt()",
    "org.apache.spark.sql.usespark.CallbackThreads.stopAsked()",
}


def test_none_of_them_changes_anything():
    """Before a name is added here: would it matter that any client of a server may call it?"""
    jar = configuration.jar()
    with zipfile.ZipFile(jar) as archive:
        names = [
            name.removesuffix(".class").replace("/", ".") for name in archive.namelist() if name.endswith(".class")
        ]
    jars = f"{jar}:{Path(pyspark.__file__).parent / 'jars'}/*"
    told = subprocess.run(["javap", "-public", "-cp", jars, *names], check=False, capture_output=True, text=True).stdout
    owner, reachable, owners = "", set(), set()
    for line in told.splitlines():
        if found := re.match(r"public .*?\b(?:class|interface|record) ([\w.$]+)", line):
            owner = found[1]
            owners.add(owner)
        elif found := re.match(rf"\s+public static (?:\w+ )*[\w.$\[\]<>, ]+ (\w+)\(((?:{SIMPLE}(?:, )?)*)\)", line):
            reachable.add(f"{owner}.{found[1]}({found[2]})")
    assert {"io.usespark.Bridge", "io.usespark.TokenAuthentication"} < owners
    # Those of case classes return functions, which java_method prints.
    reachable = {name for name in reachable if not name.endswith((".curried()", ".tupled()"))}
    assert sorted(reachable) == sorted(HARMLESS)
