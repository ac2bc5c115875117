package io.usespark

import java.{util => ju}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.connector.catalog.{Identifier, ProcedureCatalog}
import org.apache.spark.sql.connector.catalog.procedures.{BoundProcedure, ProcedureParameter, UnboundProcedure}
import org.apache.spark.sql.connector.read.{LocalScan, Scan}
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, NullType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** The catalog `use`: `CALL use.<name>(…)` for whatever procedures Python has declared. */
class UseProcedureCatalog extends ProcedureCatalog {
  private var catalogName: String = _

  override def initialize(name: String, options: CaseInsensitiveStringMap): Unit = catalogName = name
  override def name(): String = catalogName

  override def loadProcedure(identifier: Identifier): UnboundProcedure = {
    if (!Python.attached) throw UseException.notAttached
    val declared =
      if (identifier.namespace().isEmpty) Bridge.declarations().procedure(identifier.name()) else None
    declared.map(new UseProcedure(_)).getOrElse {
      val procedure = (identifier.namespace() :+ identifier.name()).mkString(".")
      // Python words the refusal, so that it can name the nearest match.
      Python.text(Operation.UNKNOWN_PROCEDURE, Map("name" -> procedure))
      throw UseException.notSupported(s"There is no procedure $procedure.")
    }
  }

  // Spark 4.0 never calls it.
  def listProcedures(namespace: Array[String]): Array[Identifier] =
    Bridge.declarations().procedures.keys.toArray.sorted.map(Identifier.of(namespace, _))
}

/**
 * One declared procedure.
 *
 * Spark casts each argument to the type of its parameter, in silence: 1.5 would reach an INT as 1. Where it cannot, it
 * shows a plan. A single value and an array of single values are therefore taken with the type that the caller gave them,
 * and Python decides whether they fit the declared one.
 */
final class UseProcedure(declaration: ProcedureDeclaration) extends UnboundProcedure {
  override def name(): String = declaration.name
  override def description(): String = declaration.doc

  override def bind(inputType: StructType): BoundProcedure = {
    val (named, positional) = inputType.fields.partition(_.metadata.contains(ProcedureParameter.BY_NAME_METADATA_KEY))
    val spelled =
      named.flatMap(field => declaration.parameters.find(_.name.equalsIgnoreCase(field.name)).map(_ -> field))
    val typesGiven = (declaration.parameters.zip(positional) ++ spelled).map { case (p, field) =>
      p.name -> field.dataType
    }.toMap
    val parameters = declaration.parameters.map { p =>
      typesGiven.get(p.name).filter(keepsType) match {
        // Spark checks the default against the type, also where a value is given.
        case Some(dataType) => p.copy(dataType = dataType, default = p.default.map(_ => "NULL"))
        case None => p
      }
    }
    new BoundUseProcedure(
      declaration.copy(parameters = parameters),
      spelled.map { case (p, field) => p.name -> field.name }.toMap
    )
  }

  private def keepsType(argument: DataType): Boolean = argument match {
    case ArrayType(item, _) => UseProcedure.isSingle(item)
    case other => UseProcedure.isSingle(other)
  }
}

/**
 * A procedure with the types that one call gives it; Python does the work and its DataFrame becomes the rows.
 *
 * @param spelled names of parameters as the call spells them, since Spark 4.0 compares them with their case
 */
final class BoundUseProcedure(declaration: ProcedureDeclaration, spelled: Map[String, String]) extends BoundProcedure {
  override def name(): String = declaration.name
  override def description(): String = declaration.doc
  override def isDeterministic: Boolean = false

  override def parameters(): Array[ProcedureParameter] = declaration.parameters.map { p =>
    val builder = ProcedureParameter.in(spelled.getOrElse(p.name, p.name), p.dataType).comment(p.doc)
    p.default.foreach(sql => builder.defaultValue(sql))
    builder.build()
  }.toArray

  override def call(input: InternalRow): ju.Iterator[Scan] = {
    val values = new ju.LinkedHashMap[String, Object]()
    declaration.parameters.zipWithIndex.foreach { case (p, i) =>
      val value = CatalystTypeConverters.convertToScala(input.get(i, p.dataType), p.dataType)
      values.put(p.name, UseProcedure.toJava(value))
    }
    val (schema, found) = Python.rows(Operation.CALL, Map("name" -> declaration.name, "arguments" -> values))
    val scan = new LocalScan {
      override def readSchema(): StructType = schema
      override def rows(): Array[InternalRow] = found
      override def description(): String = s"use.${declaration.name}"
    }
    if (schema.isEmpty) ju.Collections.emptyIterator[Scan]() else ju.List.of[Scan](scan).iterator()
  }
}

object UseProcedure {

  /** Whether values of the type have no parts. */
  private[usespark] def isSingle(dataType: DataType): Boolean = dataType match {
    case _: ArrayType | _: MapType | _: StructType | NullType => false
    case _ => true
  }

  private[usespark] def toJava(value: Any): Object = value match {
    case map: scala.collection.Map[_, _] =>
      val copy = new ju.LinkedHashMap[Object, Object]()
      map.foreach { case (k, v) => copy.put(toJava(k), toJava(v)) }
      copy
    case values: scala.collection.Seq[_] => new ju.ArrayList[Object](values.map(toJava).asJava)
    case other => other.asInstanceOf[Object]
  }
}
